# SPDX-License-Identifier: Apache-2.0
"""Workloads of `make bench-cuda`, with the ratios to eager CUDA and to the faster mode of torch.compile to be reached."""

import dataclasses

from catalog import Workload


@dataclasses.dataclass(frozen=True)
class CudaWorkload(Workload):
    block: int = 50
    arrays: int = 0  # that it reads and writes, as large as those of `copy`; 0: not measured in bandwidth
    limit_s: int = 60  # until it is warm, compilers included
    warm_blocks: int = 3
    replays: float = 0.0  # torch.compile's time over that with our backend, to be reached; 0: not measured
    has_floor: bool = True  # what it does does not follow from values, which the null device does not compute
    graphs: str = "compile+graphs"  # torch.compile's variant with CUDA graphs
    is_large: bool = False  # its variants together take more than a third of a GPU's memory
    compiles: bool = True  # torch.compile is measured; of many sizes it has a graph for each
    waits: bool = True  # under compile=sync; where new traces come for ever, the default is what people have


# For SGD: a graph of its step makes the momentum buffers in its own memory, and PyTorch refuses to read them at the next.
MODEL_GRAPHS = "compile+graphs of the model"
FROZEN = "compile+graphs, frozen"  # for inference: parameters become constants of the graph


# A step is launched when it has been recorded: what waits after every few steps waits for one recording each time. Training loops read
# a loss every 50 steps or so, and the host is slower in the first tens of milliseconds after a pause, as between two blocks: so blocks are 50
# steps, of large models and large results 20. In the order in which they run: what is quick first.
WORKLOADS = [
    CudaWorkload("Adam, 300 of 64 x 64, C++", "adam300", 12.0, is_cpp=True),
    CudaWorkload("GRU by hand, C++", "gru", 6.0, is_cpp=True),
    CudaWorkload("GPT, C++", "gpt", 3.5, is_cpp=True),
    CudaWorkload("GPT, 16 lengths in turn, C++", "gpt_lengths", 2.0, block=48, is_cpp=True),
    CudaWorkload("GPT, 96 lengths shuffled, C++", "gpt_shuffled", 1.15, block=96, is_cpp=True),
    CudaWorkload("512 requests on one thread, C++", "serve1", 1.0, block=8, is_cpp=True),
    CudaWorkload("512 requests on eight threads, C++", "serve8", 1.0, block=8, is_cpp=True),
    CudaWorkload("512 requests of 20 convolutions on one thread, C++", "serve_conv1", 1.5, block=8, is_cpp=True),
    CudaWorkload("512 requests of 20 convolutions on eight threads, C++", "serve_conv8", 3.0, block=8, is_cpp=True),
    CudaWorkload("ResNet, C++", "resnet", 2.2, is_cpp=True),
    CudaWorkload("MLP, C++", "mlp", 2.5, is_cpp=True),
    CudaWorkload("12 pointwise ops, 8192 x 8192", "pointwise", 11.0, 1.0, block=20, arrays=3),
    CudaWorkload("layer norm + softmax, 8192 x 8192", "norm", 8.0, 1.0, block=20, arrays=2),
    CudaWorkload("MLP", "mlp", 1.2, 0.9, replays=1.1),
    CudaWorkload("Adam, 64 of 256 x 256", "adam", 1.2, 0.9, replays=1.1),
    CudaWorkload("ResNet", "resnet", 2.0, 0.9, replays=1.1, graphs=MODEL_GRAPHS),
    CudaWorkload("GPT", "gpt", 1.7, 0.9, limit_s=80, replays=1.1),
    CudaWorkload("GPT, 96 lengths shuffled", "gpt_shuffled", 1.15, block=96, compiles=False),
    CudaWorkload("64 tokens over a growing cache", "generate_cached", 1.0, block=4, compiles=False),
    CudaWorkload("GRU by hand", "gru", 3.0, 0.6, limit_s=80, replays=1.1),
    CudaWorkload("GPT-2 small, bf16, 8 x 1024", "gpt2", 1.5, 1.1, block=20, is_large=True, warm_blocks=2, limit_s=150, replays=1.1),
    CudaWorkload("ResNet-50, bf16, 64 images", "resnet50", 1.4, 1.0, block=20, is_large=True, warm_blocks=2, limit_s=150, replays=1.0, graphs=MODEL_GRAPHS),
    CudaWorkload("ResNet-50, bf16, 64 images, inference", "resnet50_eval", 2.0, 1.1, block=20, warm_blocks=2, limit_s=100, replays=1.1, graphs=FROZEN),
    CudaWorkload("BERT-base, bf16, 16 x 128", "bert", 1.8, 1.05, block=20, warm_blocks=2, limit_s=150, replays=1.05),
]

# The same, as people write them. Read inside the step they may be a little slower than the best torch.compile.
_LARGE = [workload for workload in WORKLOADS if workload.name in ("gpt2", "resnet50", "bert")]
_LARGE.append(CudaWorkload("T5-small, bf16, 16 x 128 to 64", "t5", 1.3, 0.9, block=20, warm_blocks=2, limit_s=150))
WORKLOADS += [
    dataclasses.replace(workload, title=f"{workload.title.partition(',')[0]}, loss read: {reads}", reads=reads, target=1.3,
                        compile_target=min(workload.compile_target, 1.0 if reads in ("after", "tenth") else 0.97), replays=0.0)
    for workload in _LARGE for reads in ("after", "tenth", "before", "isnan")
]
WORKLOADS += [
    CudaWorkload("PPO, 26 updates collected", "ppo", 1.6, 1.1, block=26),
    CudaWorkload("EfficientNet-B0, one image, 60 collected", "efficientnet_eval", 3.0, 0.9, block=60, limit_s=100),
    CudaWorkload("Qwen3-MoE, 8 experts, 6 layers", "qwen_moe", 1.0, 0.9, block=10, limit_s=120, has_floor=False, waits=False, warm_blocks=8),
    CudaWorkload("GAN with gradient penalty, 50 collected", "wgan_gp", 4.0, compiles=False),
    CudaWorkload("transformers' generate, GPT-2, 32 tokens", "generate_gpt2", 1.3, block=2, compiles=False),
    CudaWorkload("transformers' generate, Llama of 1 B", "generate_llama", 1.3, block=2, compiles=False, limit_s=120),
    CudaWorkload("the same, static cache", "generate_llama_static", 1.3, block=2, compiles=False, limit_s=120),
    CudaWorkload("Llama of 1 B, 32 tokens by a compiled function", "decode_llama", 1.3, 1.0, block=4, limit_s=150, replays=1.2),
]

UNREAD_TARGET = 0.95  # of rows whose loss is read after the step or each tenth: over the same without reading
BANDWIDTH_TARGET = 0.92  # of a copy's, for rows with `arrays`

# The first two steps with empty caches, under the default options: their names, how much longer than eager's, and their part of torch.compile's.
COLD = ["mlp", "gpt"]
COLD_MORE_S = 1.0
COLD_OVER_COMPILE = 0.1
