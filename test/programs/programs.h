// SPDX-License-Identifier: Apache-2.0
// Training programs, each runnable on any device.
//
// A program is a plain LibTorch training loop: it knows a device and nothing else of ours. Parameters
// and data are drawn on the CPU from generators of its own and then moved, so that every device, thread
// and run sees the same numbers; the learning rate changes at every step.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace programs {

struct Options {
  torch::Device device = torch::kCPU;
  int steps = 50;
  // The loss is read (`item()`) at steps 0, n, 2n, ...; 0 reads none before the end.
  int read_every = 1;
  // Each number of the first weights is moved to one of its neighbours, up or down by chance.
  bool is_off_by_a_rounding = false;
  // Called after each step with the number of steps done.
  std::function<void(int)> after_step = [](int) {};
};

struct Program {
  const char* name;
  std::vector<double> (*run)(const Options&);
  // Ways through one step: a program that branches has two.
  int num_paths = 1;
  // Draws from the global generator, whose order several threads do not share.
  bool draws = false;
};

std::vector<double> Mlp(const Options& options);
std::vector<double> Resnet(const Options& options);
std::vector<double> Gpt(const Options& options);
std::vector<double> Gru(const Options& options);
std::vector<double> Lstm(const Options& options);
std::vector<double> Dropout(const Options& options);
std::vector<double> Branch(const Options& options);

// Fresh inputs for every step, drawn on the CPU.
class Data {
 public:
  explicit Data(const Options& options);
  torch::Tensor Normal(at::IntArrayRef sizes);
  torch::Tensor Integers(int64_t high, at::IntArrayRef sizes);

 private:
  torch::Device device_;
  at::Generator generator_;
};

// The losses of a run, read as the options say.
class LossLog {
 public:
  explicit LossLog(const Options& options) : options_(options) {}
  void Add(const torch::Tensor& loss);
  // Reads what is not read yet.
  std::vector<double> Values() const;

 private:
  const Options& options_;
  std::vector<torch::Tensor> losses_;
};

// Draws every matrix of `module` anew, sets biases to zero, and moves the module.
void Initialize(torch::nn::Module& module, const Options& options);

// Sets a learning rate that differs at every step.
void Schedule(torch::optim::Optimizer& optimizer, double base, int step);

}  // namespace programs
