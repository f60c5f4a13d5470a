# SPDX-License-Identifier: Apache-2.0
"""What another user of the machine can do to ours: root plays both. Each of these worked once."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest
import torch
import torch_lazy

from child import CONTEXT, Child, in_child

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can play two users")
ATTACKER, USER = 65534, 1001
ADD = """
for _ in range(3):
    result = (torch.ones(3, device='lazy') + 1).tolist()
print(result)
"""


def compute(number):
    """A kernel of its own for each number; (result, kernels compiled, kernels found on disk)."""
    torch_lazy.reset_metrics()
    for _ in range(3):  # compiled from the second time on
        x = torch.arange(8.0, device="lazy")
        for _ in range(number):
            x = torch.sin(x)
        total = (x * 2 + number).tolist()
    metrics = torch_lazy.metrics()
    return total, metrics["kernels_compiled"], metrics["kernels_from_disk"]


def run(cache, number=1, **options):
    return in_child(compute, number, compile="sync", cache_dir=str(cache), **options)


def as_attacker(*command):
    subprocess.run(["setpriv", "--reuid", str(ATTACKER), "--regid", str(ATTACKER), "--clear-groups", *map(str, command)], check=True)


def give(path, user=ATTACKER, mode=None):
    for each in [path, *path.rglob("*")]:
        os.lchown(each, user, user)
        if mode is not None:
            each.chmod(mode if each.is_dir() else mode & 0o666)


@pytest.fixture
def place():
    """A folder that all can reach; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory(prefix="lazy_two_users.") as folder:
        pathlib.Path(folder).chmod(0o755)
        yield pathlib.Path(folder)


def files(cache, ending=".so"):
    return sorted(cache.rglob(f"*{ending}"))


def _swapped(ready, go):
    first = compute(1)
    ready.send(True)
    assert go.recv()
    return first, compute(2)


def test_a_folder_that_is_swapped_while_the_program_runs(place):
    """S2: code of the attacker ran as the user."""
    shared = place / "shared"
    shared.mkdir()
    run(place / "prepared", 1), run(place / "prepared", 2)  # the attacker knows the program: what is in it would be his code
    run(shared / "cache", 1)
    os.chown(shared, ATTACKER, ATTACKER)
    shared.chmod(0o777)
    give(place / "prepared")
    prepared = place / "attackers"
    prepared.mkdir()
    shutil.move(place / "prepared", prepared / "cache")
    os.chown(prepared, ATTACKER, ATTACKER)
    ready, sends_ready = CONTEXT.Pipe(duplex=False)
    go, sends_go = CONTEXT.Pipe(duplex=False)
    child = Child(_swapped, sends_ready, go, compile="sync", cache_dir=str(shared / "cache"))
    assert ready.recv()
    try:
        as_attacker("mv", shared / "cache", shared / "before")
        as_attacker("cp", "-r", prepared / "cache", shared / "cache")
    finally:
        sends_go.send(True)
    (_, _, found_before), (result, compiled, found) = child.result()
    assert found_before == 0  # who can swap it could have done so before
    assert (compiled > 0, found) == (True, 0)


def test_a_relative_folder_and_another_current_one(place):
    """S2: the same, by chdir."""
    program = "import torch, torch_lazy\ntorch_lazy.set_option('compile', 'sync')\n" + ADD
    for name, default in (("LAZY_CACHE_DIR", "home/.cache/torch_lazy"), ("XDG_CACHE_HOME", "home/.cache/torch_lazy"), ("HOME", None)):
        folder = place / name
        folder.mkdir()
        environment = {k: v for k, v in os.environ.items() if k not in ("LAZY_CACHE_DIR", "XDG_CACHE_HOME")}
        environment |= {"HOME": str(folder / "home"), name: "here"}
        done = subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment, text=True, capture_output=True)
        assert done.returncode == 0 and done.stdout == "[2.0, 2.0, 2.0]\n", done.stderr
        assert not (folder / "here").exists()
        assert f"{name}=here is ignored" in done.stderr and "absolute path" in done.stderr
        assert (default is None) or files(folder / default)


@pytest.mark.parametrize("how", ["link", "owner", "mode"])
def test_entries_that_others_can_write(place, how):
    """S3: a link to a file of the attacker's was followed, and its code loaded."""
    cache = place / "cache"
    right, kernels, _ = run(cache)
    assert run(cache) == (right, 0, kernels)
    for file in files(cache):
        if how == "link":
            theirs = place / file.name
            shutil.copy(file, theirs)
            os.chown(theirs, ATTACKER, ATTACKER)
            theirs.chmod(0o666)
            file.unlink()
            file.symlink_to(theirs)
        elif how == "owner":
            os.chown(file, ATTACKER, ATTACKER)
        else:
            file.chmod(0o666)
    assert run(cache) == (right, kernels, 0)
    assert run(cache) == (right, 0, kernels)  # made anew, in their place
    assert not [file for file in files(cache) if file.is_symlink() or file.stat().st_uid != 0 or file.stat().st_mode & 0o022]


def test_a_dump_does_not_follow_links(place):
    """S4: a file of the user's was overwritten by the page about a step."""
    public, precious = place / "public", place / "precious"
    public.mkdir()
    public.chmod(0o1777)
    precious.write_text("precious")
    as_attacker("mkdir", "-p", public / "dump" / "0000-trace")
    for number in range(4):
        as_attacker("mkdir", "-p", public / "dump" / f"{number:04}-trace")
        for name in ("step.html", "89-plan.txt", "10-cse.lir"):
            as_attacker("ln", "-s", precious, public / "dump" / f"{number:04}-trace" / name)
    as_attacker("chmod", "-R", "a+rwX", public / "dump")
    errors = place / "errors"
    run(place / "cache", dump=str(public / "dump"), errors=str(errors))
    assert precious.read_text() == "precious"
    assert "dump: " in errors.read_text() and "belongs to somebody else" in errors.read_text()


def test_a_dump_where_others_cannot_write_is_written(place):
    public = place / "public"
    public.mkdir()
    public.chmod(0o1777)
    run(place / "cache", dump=str(public / "dump"))
    pages = list((public / "dump").rglob("*.lir"))
    assert pages and all(page.stat().st_mode & 0o077 == 0 for page in [*pages, public / "dump"])


def test_temporary_files_are_where_nobody_can_swap_them(place):
    open_to_all = place / "temporary"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    environment = os.environ | {"TMPDIR": str(open_to_all), "LAZY_COMPILE": "sync", "LAZY_CACHE_DIR": str(place / "cache")}
    done = subprocess.run([sys.executable, "-c", "import torch, torch_lazy\n" + ADD], env=environment, text=True, capture_output=True)
    assert done.stdout == "[2.0, 2.0, 2.0]\n"
    assert f"temporary files are in /tmp, since {open_to_all} may be written by others (chmod go-w {open_to_all})" in done.stderr
    assert not list(open_to_all.iterdir()) and files(place / "cache")


def _as_user(number):
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    return compute(number)


def test_a_cache_of_roots_is_read_by_others(place):
    """One that was made with a container's image, say."""
    cache, errors = place / "cache", place / "errors"
    right, kernels, _ = run(cache)
    subprocess.run(["chmod", "-R", "a=rX", cache], check=True)
    before = sorted(cache.rglob("*"))
    errors.touch()
    errors.chmod(0o666)
    assert in_child(_as_user, 1, compile="sync", cache_dir=str(cache), errors=str(errors)) == (right, 0, kernels)
    _, compiled, _ = in_child(_as_user, 3, compile="sync", cache_dir=str(cache), errors=str(errors))
    assert compiled > 0  # and not kept
    assert sorted(cache.rglob("*")) == before
    assert run(cache) == (right, 0, kernels)  # by whom it belongs to, too
    assert "warning" not in errors.read_text()


def test_a_cache_of_another_user_is_not_read(place):
    cache, errors = place / "cache", place / "errors"
    right, kernels, _ = run(cache)
    give(cache, mode=0o755)
    assert run(cache, errors=str(errors)) == (right, kernels, 0)
    assert f"compiled kernels are not kept on disk: {cache} belongs to somebody else, user {ATTACKER}" in errors.read_text()
