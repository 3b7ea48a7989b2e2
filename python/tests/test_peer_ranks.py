"""Tests of ranks that run at the same time under `offprof exec -- torchrun`, and exchange small values."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from conftest import Exec, Executed, run_under_exec

TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node")
START = """
import os, signal, time
import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl", device_id=device if "EAGER" in os.environ else None)
def numbers(*values): return torch.tensor(values, dtype=torch.float32).to(device)
def say(*words): os.write(1, (" ".join(map(str, words)) + "\\n").encode())
"""


@pytest.fixture
def together(tmp_path: Path) -> Exec:
    """A function that runs a program as several ranks at once."""

    def run(text: str, ranks: int = 2, **variables: str) -> Executed:
        path = tmp_path / "program.py"
        path.write_text(START + text)
        set_too = {"OMP_NUM_THREADS": "1", **variables}
        return run_under_exec(tmp_path, (), (*TORCHRUN, ranks, path), "", set_too, timeout_s=120)

    return run


def test_collectives_carry_the_values_of_all_ranks(together: Exec) -> None:
    done = together(
        """
gathered = [torch.empty(2, device=device) for _ in range(3)]
dist.all_gather(gathered, numbers(rank, 10 * rank))
reduced = numbers(rank + 1, 2)
dist.all_reduce(reduced)
largest = numbers(rank)
dist.all_reduce(largest, op=dist.ReduceOp.MAX)
told = numbers(5 + rank)
dist.broadcast(told, src=2)
scattered = torch.empty(1, device=device)
dist.reduce_scatter_tensor(scattered, numbers(1 + rank, 2 + rank, 3 + rank))
of_list = torch.empty(1, device=device)
dist.reduce_scatter(of_list, [numbers(1 + rank), numbers(2 + rank), numbers(3 + rank)])
assert of_list.item() == scattered.item(), of_list
swapped = torch.empty(3, device=device)
dist.all_to_all_single(swapped, numbers(10 * rank, 10 * rank + 1, 10 * rank + 2))
values = [tensor.tolist() for tensor in (*gathered, reduced, largest, told, scattered, swapped)]
say(rank, values)
dist.destroy_process_group()
""",
        3,
    )
    assert done.status == 0, done.err
    same = "[0.0, 0.0], [1.0, 10.0], [2.0, 20.0], [6.0, 6.0], [2.0], [7.0]"
    assert sorted(line for line in done.out.splitlines() if line) == [
        f"0 [{same}, [6.0], [0.0, 10.0, 20.0]]",
        f"1 [{same}, [9.0], [1.0, 11.0, 21.0]]",
        f"2 [{same}, [12.0], [2.0, 12.0, 22.0]]",
    ]


def test_ranks_send_each_other_values(together: Exec) -> None:
    done = together("""
for number in range(3):
    if rank == 0:
        dist.send(numbers(number, 7), dst=1)
    else:
        received = torch.empty(2, device=device)
        dist.recv(received, src=0)
        say(received.tolist())
other = torch.empty(1, device=device)
for work in dist.batch_isend_irecv([dist.P2POp(dist.irecv, other, 1 - rank), dist.P2POp(dist.isend, numbers(rank), 1 - rank)]):
    work.wait()
assert other.item() == 1 - rank
dist.destroy_process_group()
""")
    assert done.status == 0, done.err
    assert done.out.split("\n")[:3] == ["[0.0, 7.0]", "[1.0, 7.0]", "[2.0, 7.0]"]


def test_parts_of_a_group_know_their_ranks(together: Exec) -> None:
    done = together(
        """
parts = [dist.new_group([0, 2]), dist.new_group([1, 3])]
mine = numbers(rank)
dist.all_reduce(mine, group=parts[rank % 2])
say(rank, mine.item())
dist.destroy_process_group()
""",
        4,
        EAGER="1",  # communicators of parts are split off
    )
    assert done.status == 0, done.err
    assert sorted(line for line in done.out.splitlines() if line) == ["0 2.0", "1 4.0", "2 2.0", "3 4.0"]


def test_a_program_starts_its_ranks_itself(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import torch
import torch.distributed as dist
import torch.multiprocessing

def train(rank, ranks, job="first"):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{tmp_path}/store-{{job}}", rank=rank, world_size=ranks)
    number = torch.tensor([rank + 1.0]).cuda()
    dist.all_reduce(number)
    told = [(job, rank, bytes(9 << 20))]
    dist.broadcast_object_list(told, src=1)
    assert (number.item(), told[0][:2], len(told[0][2])) == (6.0, (job, 1), 9 << 20)
    dist.destroy_process_group()
    dist.init_process_group("nccl", init_method=f"file://{tmp_path}/store2-{{job}}", rank=rank, world_size=ranks)
    told = [10 * rank]
    dist.broadcast_object_list(told, src=2)
    assert told == [20]
    dist.destroy_process_group()

if __name__ == "__main__":
    torch.multiprocessing.spawn(train, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count())
    torch.multiprocessing.spawn(train, args=(torch.cuda.device_count(), "again"), nprocs=torch.cuda.device_count())
"""
    )
    done = run_under_exec(tmp_path, ("--devices", 3), (sys.executable, program), "", {"OMP_NUM_THREADS": "1"})
    assert done.status == 0, done.err
    assert sorted(process["rank"] for process in done.processes) == [0, 0, 1, 1, 2, 2]


def test_a_fake_process_group_has_no_peers(tmp_path: Path) -> None:
    text = """
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=4)
dist.all_reduce(torch.ones(8, device="cuda"))
objects = [None] * 4
dist.all_gather_object(objects, {"rank": 1})
print(objects == [{"rank": 1}] * 4)
objects = [None]
try:
    dist.broadcast_object_list(objects, src=0)
except RuntimeError as error:
    print(error)
dist.destroy_process_group()
"""
    done = run_under_exec(tmp_path, (), (), text, {}, timeout_s=120)
    assert done.status == 0, done.err
    said = ["True", "the object of rank 0 is not known: a fake process group has no other ranks"]
    assert done.out.splitlines()[:2] == said


def test_a_process_that_chooses_a_missing_device_is_told_how_to_get_it(tmp_path: Path) -> None:
    choose = "import torch\ntorch.cuda.set_device(3)"
    done = run_under_exec(tmp_path, (), (sys.executable, "-c", choose), "")
    assert "invalid device ordinal" in done.err
    assert done.process["notes"] == [
        "the program chose cuda:3, which does not exist: offprof exec --devices 4 gives it so many devices, one for each "
        "process that it starts"
    ]


def line_of(text: str, comment: str) -> int:
    """Returns the number of the line with that comment in the program that `together` runs."""
    return next(number for number, line in enumerate((START + text).splitlines(), 1) if line.endswith(comment))


def test_collectives_that_do_not_match_are_reported_with_both_places(together: Exec) -> None:
    text = """
large = torch.zeros(1000, device=device)
for _ in range(2):
    dist.all_reduce(large)
if rank == 0:
    dist.all_reduce(large[:10])  # of rank 0
else:
    dist.broadcast(large, src=0)  # of rank 1
time.sleep(1)
dist.all_reduce(large)
"""
    done = together(text)
    assert done.status == 1
    assert "ranks of a communicator call different collectives" in done.err
    assert f"program.py:{line_of(text, '# of rank 0')}" in done.err
    assert f"program.py:{line_of(text, '# of rank 1')}" in done.err


def test_a_rank_that_calls_fewer_collectives_is_reported_with_both_places(together: Exec) -> None:
    text = """
large = torch.zeros(100_000, device=device)
for batch in range(3 - rank):  # the last rank has fewer batches
    dist.all_reduce(large)  # of a batch
dist.destroy_process_group()  # the end
"""
    done = together(text)
    assert done.status == 1
    all_reduce = rf"rank 0 calls all_reduce of 400000 bytes .*program\.py:{line_of(text, '# of a batch')}"
    nothing = rf"rank 1 calls nothing more at .*program\.py:{line_of(text, '# the end')}"
    assert re.search(f"{all_reduce}, and {nothing}|{nothing}, and {all_reduce}", done.err)


def test_messages_without_a_counterpart_are_reported(together: Exec) -> None:
    text = """
large = torch.zeros(100_000, device=device)
if rank == 0:
    dist.send(large, 1)  # it is received
    dist.send(large, 1)  # of rank 0
elif rank == 1:
    dist.recv(large, 0)
    dist.recv(large[:10], 0)  # of rank 1
    dist.send(large, 2)  # to nobody
dist.barrier()
"""
    done = together(text, ranks=3)
    assert done.status == 1
    rank_0, rank_1, nobody = (line_of(text, comment) for comment in ("# of rank 0", "# of rank 1", "# to nobody"))
    first, second = done.report["unmatched_messages"]
    assert re.search(rf"rank 0 .*program\.py:{rank_0}, and rank 1 receives 40 bytes of float32 at .*:{rank_1}$", first)
    assert re.search(
        rf"rank 1 sends 400000 bytes of float32 at .*program\.py:{nobody}, which no rank receives$", second
    )


def test_a_rank_that_raises_ends_the_job(together: Exec) -> None:
    done = together("""
if rank == 1:
    raise ValueError("no data")
dist.all_reduce(numbers(1))
time.sleep(60)
""")
    assert done.status == 1
    assert "ValueError: no data" in done.err


def test_a_rank_that_is_killed_ends_the_job(together: Exec) -> None:
    done = together("""
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(60)
""")
    assert done.status == 1
    assert "Signal 9 (SIGKILL)" in done.err


@pytest.mark.parametrize("read", ["mine.item()", "(mine.long() + counts.view(1, 2).sum(1)).tolist()"])
def test_a_peer_that_never_comes_is_waited_for_a_limited_time(together: Exec, read: str) -> None:
    done = together(
        f"""
if rank == 0:
    mine, counts = numbers(1), torch.tensor([3, 4]).to(device)
    dist.all_reduce(mine if "{read}" == "mine.item()" else counts)
    print({read})
else:
    time.sleep(60)
""",
        OFFPROF_PEER_TIMEOUT="2",
    )
    assert done.status == 1
    value = "a value of rank 1 of the communicator"  # which has not joined it, so its rank in the job is not known
    waited = rf"rank 0 has waited 2 s for {value} in .*program\.py:\d+: .*\(OFFPROF_PEER_TIMEOUT=SECONDS waits"
    assert re.search(waited, done.err)
    assert "a value of another rank was not received" in done.err


@pytest.mark.parametrize("other", ["signal.pause()", "dist.broadcast_object_list([1], src=1); signal.pause()"])
def test_an_object_that_never_comes_is_waited_for_a_limited_time(together: Exec, other: str) -> None:
    done = together(
        f"""
if rank == 0:
    dist.all_gather_object([None, None], 1)
else:
    {other}
""",
        OFFPROF_PEER_TIMEOUT="2",
    )
    assert done.status == 1
    assert "rank 0 has waited 2 s for an object of rank 1" in done.err


def test_an_object_of_a_rank_whose_process_has_ended_is_not_waited_for(together: Exec) -> None:
    done = together("""
if rank == 0:
    dist.all_gather_object([None, None], 1)
else:
    os._exit(0)
""")
    assert done.status == 1
    assert "rank 0 waits for an object of rank 1, whose process has ended" in done.err


def test_a_time_to_wait_that_is_no_number_is_refused(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "print('ran')")
    done = run_under_exec(tmp_path, (), command, "", {"OFFPROF_PEER_TIMEOUT": "soon"}, timeout_s=60)
    assert done.status == 2
    assert done.out == ""
    assert "OFFPROF_PEER_TIMEOUT=soon is not a whole number of seconds" in done.err


@pytest.mark.parametrize("wait", ["dist.all_gather_object([None, None], 1)", "say(reduced.item())"])
def test_a_rank_that_waits_ends_with_the_job(together: Exec, wait: str) -> None:
    done = together(f"""
reduced = numbers(1)
dist.barrier()
if rank == 1:
    raise ValueError("no data")
dist.all_reduce(reduced)
{wait}
""")
    assert done.status == 1
    assert "ValueError: no data" in done.err
    assert "peak_allocated_bytes" in done.of_rank(0)  # torchrun kills what goes on for 30 s


def test_a_rank_sends_to_itself(together: Exec) -> None:
    done = together("""
taken = [torch.empty(1, device=device), torch.empty(1, device=device)]
dist.all_to_all(taken, [numbers(10 * rank), numbers(10 * rank + 1)])
say(rank, [tensor.item() for tensor in taken])
dist.destroy_process_group()
""")
    assert done.status == 0, done.err
    assert sorted(line for line in done.out.splitlines() if line) == ["0 [0.0, 10.0]", "1 [1.0, 11.0]"]


def test_what_does_not_divide_among_the_ranks_fails(together: Exec) -> None:
    done = together("dist.reduce_scatter_tensor(torch.empty(2, device=device), torch.zeros(5, device=device))")
    assert done.status == 1
    assert "times world size" in done.err
