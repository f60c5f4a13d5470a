# SPDX-License-Identifier: Apache-2.0
"""The module torch.lazy and the package's own functions, as PyTorch and programs call them."""
import copy
import os

import pytest
import torch
import torch.utils.checkpoint
import torch_lazy


def test_the_name_means_our_device():
    assert torch.device("lazy").type == "lazy"
    assert torch.ones(2, device="lazy").is_lazy
    assert torch.ones(2).lazy().device == torch.device("lazy", 0)


def test_devices_are_counted_and_chosen():
    assert torch.lazy.is_available() and torch.lazy.is_initialized()
    assert torch.lazy.device_count() >= 1
    with torch.lazy.device("lazy:0"):
        assert torch.lazy.current_device() == 0
    torch.lazy.set_device(0)
    assert torch.accelerator.current_accelerator().type == "lazy"
    assert torch.lazy.get_device_properties().total_memory > 0
    with pytest.raises(RuntimeError, match="out of range"):
        torch.lazy.get_device_properties(1000)
    with pytest.raises(ValueError, match="expected a lazy device"):
        torch.lazy.set_device("cpu")


def test_devices_are_chosen_where_the_accelerator_is_another(monkeypatch):
    """As on a machine with a GPU, where the accelerator's hooks are CUDA's."""

    def refuse(*unused):
        raise RuntimeError("another device's hooks")

    for name in ("maybe_exchange_device", "set_current_device", "get_current_device", "device_count"):
        monkeypatch.setattr(torch._C, "_accelerator_hooks_" + name, refuse)
    torch.lazy.set_device(0)
    with torch.lazy.device(0), torch.lazy.device(None):
        assert torch.lazy.current_device() == 0 and torch.lazy.device_count() == 1
    for index in 1, 8:
        with pytest.raises(RuntimeError, match="out of range"), torch.lazy.device(index):
            pass
    x = torch.ones(3, device="lazy", requires_grad=True)
    torch.utils.checkpoint.checkpoint(lambda x: x * x, x, use_reentrant=False).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_the_same_seed_gives_the_same_numbers_as_eager():
    torch.manual_seed(3)
    expected = torch.rand(5)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(5, device="lazy").cpu(), expected)


def test_random_state_is_kept_and_restored():
    torch.lazy.manual_seed_all(7)
    assert torch.lazy.initial_seed() == 7
    state = torch.lazy.get_rng_state()
    first = torch.rand(3, device="lazy").cpu()
    torch.lazy.set_rng_state(state)
    assert torch.equal(torch.rand(3, device="lazy").cpu(), first)
    with torch.random.fork_rng(device_type="lazy"):
        torch.lazy.manual_seed(1)
    torch.lazy.set_rng_state_all([state])
    assert torch.equal(torch.rand(3, device="lazy").cpu(), first)


def test_seed_seeds_the_device_too():
    torch.seed()
    assert torch.lazy.initial_seed() == torch.initial_seed()


def test_streams_events_and_synchronize():
    stream = torch.lazy.current_stream()
    assert stream.device.type == "lazy"
    with torch.lazy.stream(stream):
        x = torch.ones(3, device="lazy") + 1
    torch.lazy.synchronize()
    assert x.sum().item() == 6


def test_memory_is_counted():
    x = torch.ones(1 << 16, device="lazy")
    torch_lazy.sync()
    assert torch.lazy.memory_allocated() >= x.nbytes
    assert torch.lazy.max_memory_allocated() >= torch.lazy.memory_allocated()
    torch.lazy.empty_cache()
    assert x.sum().item() == 1 << 16


def test_autocast_computes_in_bfloat16():
    a = torch.ones(4, 4, device="lazy")
    with torch.autocast("lazy", dtype=torch.bfloat16):
        assert (a @ a).dtype == torch.bfloat16


def test_metrics_count_and_can_be_reset():
    torch_lazy.sync()
    torch_lazy.reset_metrics()
    assert torch_lazy.metrics()["calls_total"] == 0
    (torch.ones(3, device="lazy") + 1).sum().item()
    assert torch_lazy.metrics()["calls_total"] >= 3
    assert torch.lazy.metrics().keys() == torch_lazy.metrics().keys()
    assert isinstance(torch_lazy.explain(), str)


def test_an_unknown_option_is_refused():
    with pytest.raises(ValueError, match="no_such_option"):
        torch_lazy.set_option("no_such_option", "1")


def test_dlpack_names_an_extension_device():
    kind, index = torch.ones(2, device="lazy").__dlpack_device__()
    assert (int(kind), index) == (12, 0)
    assert torch.ones(2).__dlpack_device__()[0] == 1


def test_mark_step_of_torch_testing_is_a_sync():
    x = torch.ones(2, device="lazy") + 1
    torch._lazy.mark_step()
    assert x.tolist() == [2, 2]


def test_a_forked_child_knows_that_it_is_one():
    torch.ones(2, device="lazy").sum().item()
    child = os.fork()
    if child == 0:
        os._exit(0 if torch.lazy._is_in_bad_fork() and not torch.lazy.is_initialized() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not torch.lazy._is_in_bad_fork()


def test_empty_results_have_eagers_strides():
    def product(device):
        return torch.ones(0, 1, device=device) * torch.ones(1, 1, device=device)

    assert product("lazy").stride() == product("cpu").stride()


def test_deepcopy_keeps_what_tensors_share():
    whole = torch.arange(12.0, device="lazy")
    part = whole[2:8:2]
    whole_copy, part_copy = copy.deepcopy([whole, part])
    assert part_copy.stride() == (2,) and part_copy.storage_offset() == 2
    whole_copy += 1
    assert part_copy.tolist() == [3.0, 5.0, 7.0]
    assert part.tolist() == [2.0, 4.0, 6.0]
