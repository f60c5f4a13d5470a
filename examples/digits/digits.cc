// SPDX-License-Identifier: Apache-2.0
// Trains a small convolutional network on handwritten digits: a plain LibTorch program.
//
// Nothing in it knows of the lazy device but the string "lazy" and the link line in CMakeLists.txt; what it prints is
// report.h's affair.
//   digits [--device cpu|lazy] [--epochs N] [--seed N] [--data FILE]      without --device: both, side by side
#include <torch/torch.h>

#include <fstream>
#include <iostream>

#include "report.h"

namespace {

using torch::Tensor;

struct Options {
  std::vector<std::string> devices = {"cpu", "lazy"};
  size_t epochs = 12;
  uint64_t seed = 1;
  std::string data = DIGITS_CSV;
};

struct Batch {
  Tensor images, labels;
};

struct NetImpl : torch::nn::Module {
  NetImpl() {
    using namespace torch::nn;
    body = register_module("body",
                           Sequential(Conv2d(Conv2dOptions(1, 32, 3).padding(1).bias(false)), BatchNorm2d(32), ReLU(),
                                      Conv2d(Conv2dOptions(32, 64, 3).padding(1).bias(false)), BatchNorm2d(64), ReLU(),
                                      MaxPool2d(2), Flatten(), Linear(64 * 4 * 4, 64), ReLU(), Linear(64, 10)));
  }
  Tensor forward(const Tensor& images) { return body->forward(images); }
  torch::nn::Sequential body = nullptr;
};
TORCH_MODULE(Net);

// Each line of the file is 64 pixels of 0 to 16, and the digit. Two thirds are for training.
std::pair<Batch, Batch> LoadDigits(const std::string& path) {
  std::ifstream file(path);
  TORCH_CHECK(file, "digits: cannot read ", path);
  std::vector<float> numbers;
  for (float number; file >> number; file.ignore()) numbers.push_back(number);
  const Tensor rows = torch::tensor(numbers).view({-1, 65});
  const Tensor shuffled = rows.index_select(0, torch::randperm(rows.size(0)));
  const auto part = [&](int64_t begin, int64_t end) {
    const Tensor some = shuffled.slice(0, begin, end);
    return Batch{some.slice(1, 0, 64).reshape({-1, 1, 8, 8}) / 16, some.select(1, 64).to(torch::kLong)};
  };
  const int64_t num_train = rows.size(0) * 2 / 3;
  return {part(0, num_train), part(num_train, rows.size(0))};
}

// One pass over the training images; returns the mean loss. Only its last line waits for the device.
double TrainEpoch(Net& net, torch::optim::Optimizer& optimizer, const Batch& train,
                  const std::vector<Tensor>& batches) {
  net->train();
  Tensor loss_sum = torch::zeros({}, train.images.options());
  for (const Tensor& cpu_picks : batches) {
    const Tensor picks = cpu_picks.to(train.labels.device());
    optimizer.zero_grad();
    const Tensor loss = torch::cross_entropy_loss(net->forward(train.images.index_select(0, picks)),
                                                  train.labels.index_select(0, picks));
    loss.backward();
    optimizer.step();
    loss_sum += loss.detach();
  }
  return loss_sum.item<double>() / static_cast<double>(batches.size());
}

// How sure the network is of each digit for each image.
Tensor Probabilities(Net& net, const Tensor& images) {
  const torch::NoGradGuard no_grad;
  net->eval();
  return net->forward(images).softmax(1).cpu();
}

// Trains on the last device of `trainings`, and prints a line an epoch of all of them. Returns the probabilities of the
// test images.
Tensor Train(std::vector<Training>& trainings, const Options& options, Batch train, const Batch& test) {
  constexpr int64_t kBatchSize = 64;
  Training& training = trainings.back();
  const torch::Device device(training.device);
  torch::manual_seed(options.seed);
  Net net;
  net->to(device);
  train = {train.images.to(device), train.labels.to(device)};
  torch::optim::Adam optimizer(net->parameters());

  for (size_t epoch = 0; epoch < options.epochs; ++epoch) {
    const double progress = static_cast<double>(epoch) / static_cast<double>(options.epochs);
    for (auto& group : optimizer.param_groups()) group.options().set_lr(1e-3 * (1 + std::cos(M_PI * progress)));
    ShowProgress("      " + training.device + ", epoch " + std::to_string(epoch + 1));
    if (epoch == options.epochs / 2) training.waited_seconds = WaitForCompilers();
    const std::vector<Tensor> batches = torch::randperm(train.labels.size(0)).split(kBatchSize);
    EpochMeter meter;
    const double loss = TrainEpoch(net, optimizer, train, batches);
    training.epochs.push_back(meter.End(loss, static_cast<int64_t>(batches.size())));
    if (trainings.size() == options.devices.size()) PrintEpoch(trainings, epoch);
  }
  const Tensor probabilities = Probabilities(net, test.images.to(device));
  training.accuracy = probabilities.argmax(1).eq(test.labels).to(torch::kFloat).mean().item<double>();
  return probabilities;
}

// The test images to whose digit the network gives least.
void ShowDoubtful(const Tensor& probabilities, const Batch& test) {
  const Tensor given = probabilities.gather(1, test.labels.unsqueeze(1)).squeeze(1);
  const Tensor picks = std::get<1>(given.topk(4, /*dim=*/0, /*largest=*/false));
  std::vector<std::vector<float>> images;
  std::vector<std::string> captions;
  for (int64_t i = 0; i < picks.size(0); ++i) {
    const int64_t pick = picks[i].item<int64_t>(), label = test.labels[pick].item<int64_t>();
    const int64_t guess = probabilities[pick].argmax().item<int64_t>();
    const Tensor image = test.images[pick].contiguous();
    images.emplace_back(image.data_ptr<float>(), image.data_ptr<float>() + image.numel());
    captions.push_back("a " + std::to_string(label) +
                       (guess == label ? ", rightly" : ", taken for " + std::to_string(guess)));
  }
  std::printf("\nleast sure of:\n");
  PrintImages(images, captions);
}

Options ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    TORCH_CHECK(i + 1 < argc, "digits: ", name, " needs a value");
    const std::string value = argv[i + 1];
    if (name == "--device") {
      options.devices = {value};
    } else if (name == "--epochs") {
      options.epochs = std::stoul(value);
    } else if (name == "--seed") {
      options.seed = std::stoull(value);
    } else if (name == "--data") {
      options.data = value;
    } else {
      TORCH_CHECK(false, "digits: unknown option ", name);
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = ParseOptions(argc, argv);
  torch::manual_seed(options.seed);
  const auto [train, test] = LoadDigits(options.data);
  std::printf("A network of two convolutions reads %ld handwritten digits, and is tried on %ld others.\n\n",
              train.labels.size(0), test.labels.size(0));
  PrintTitle(options.devices);
  std::vector<Training> trainings;
  Tensor probabilities;
  for (const std::string& device : options.devices) {
    trainings.emplace_back(device);
    probabilities = Train(trainings, options, train, test);
  }
  PrintComparison(trainings);
  if (trainings.back().is_lazy()) PrintWhereTimeWent(trainings.back());
  ShowDoubtful(probabilities, test);
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
