// SPDX-License-Identifier: Apache-2.0
// Trains a small convolutional network on handwritten digits: a plain LibTorch program.
//
// Nothing in it knows of the lazy device but the string "lazy" and the link line in CMakeLists.txt.
//   digits [--device cpu|lazy] [--epochs N] [--seed N] [--data FILE]      without --device: both,
//   and a comparison
#include <torch/torch.h>

#include "report.h"

namespace {

using torch::Tensor;

struct Options {
  std::vector<std::string> devices = {"cpu", "lazy"};
  int64_t epochs = 12;
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

// One pass over the training images; returns the mean loss. Only its last line waits for the
// device.
double TrainEpoch(Net& net, torch::optim::Optimizer& optimizer, const Batch& train, int64_t batch_size,
                  ProgressBar& bar) {
  net->train();
  const Tensor order = torch::randperm(train.labels.size(0));
  Tensor loss_sum = torch::zeros({}, train.images.options());
  int64_t num_steps = 0;
  for (const Tensor& cpu_picks : order.split(batch_size)) {
    const Tensor picks = cpu_picks.to(train.labels.device());
    optimizer.zero_grad();
    const Tensor loss = torch::cross_entropy_loss(net->forward(train.images.index_select(0, picks)),
                                                  train.labels.index_select(0, picks));
    loss.backward();
    optimizer.step();
    loss_sum += loss.detach();
    bar.Show(++num_steps);
  }
  return loss_sum.item<double>() / static_cast<double>(num_steps);
}

double Accuracy(Net& net, const Batch& test) {
  const torch::NoGradGuard no_grad;
  net->eval();
  return net->forward(test.images).argmax(1).eq(test.labels).to(torch::kFloat).mean().item<double>();
}

Result Train(const std::string& device_name, const Options& options) {
  constexpr int64_t kBatchSize = 64;
  const torch::Device device(device_name);
  torch::manual_seed(options.seed);
  auto [train, test] = LoadDigits(options.data);
  Net net;
  net->to(device);
  for (Batch* batch : {&train, &test}) {
    *batch = {batch->images.to(device), batch->labels.to(device)};
  }
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(2e-3));
  Result result{device_name};
  const int64_t num_steps = (train.labels.size(0) + kBatchSize - 1) / kBatchSize;

  for (int64_t epoch = 1; epoch <= options.epochs; ++epoch) {
    const double progress = static_cast<double>(epoch - 1) / static_cast<double>(options.epochs);
    for (auto& group : optimizer.param_groups()) {
      group.options().set_lr(1e-3 * (1 + std::cos(M_PI * progress)));
    }
    result.BeginEpoch();
    ProgressBar bar(device_name, epoch, options.epochs, num_steps);
    const double loss = TrainEpoch(net, optimizer, train, kBatchSize, bar);
    const double ms_per_step = result.EndEpoch(num_steps);
    result.accuracy = Accuracy(net, test);
    bar.Finish(loss, result.accuracy, ms_per_step);
  }
  return result;
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
      options.epochs = std::stoll(value);
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
  std::vector<Result> results;
  for (const std::string& device : options.devices) results.push_back(Train(device, options));
  PrintTable(results);
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
