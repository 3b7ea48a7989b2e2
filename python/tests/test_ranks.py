"""Tests of ranks of many on the virtual GPU: each alone, and all together under torchrun."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import Exec, Executed, run_under_exec

PROGRAMS = Path(__file__).resolve().parents[2] / "tests" / "programs" / "ranks"
IS_FULL = os.environ.get("OFFPROF_TEST_EXTENT") == "full"
WORLDS = (2, 4) if IS_FULL else (2,)
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node")


def in_job(text: str, options: str = '"nccl"') -> str:
    """Returns a program that runs the text as a rank of a job, whose group it makes with the options."""
    start = """
        import os, torch
        import torch.distributed as dist

        rank = int(os.environ["RANK"])
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    """
    lines = (start, f"dist.init_process_group({options})\n", text, "dist.destroy_process_group()\n")
    return "".join(textwrap.dedent(part) for part in lines)


@pytest.fixture
def execute(tmp_path: Path) -> Exec:
    """A function that runs a command, or a Python script, under `offprof exec` with options."""

    def run(*options: object, command: tuple[object, ...] = (), script: str = "") -> Executed:
        return run_under_exec(tmp_path, options, command, script, {"OMP_NUM_THREADS": "1"}, timeout_s=300)

    return run


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(
    "name", ["ddp", "fsdp2", "fsdp1", "tensor_parallel", "pipeline", *(["trainer_fsdp", "zero"] if IS_FULL else [])]
)
def test_a_rank_alone_has_the_memory_of_one_among_its_peers(
    execute: Exec, name: str, world: int, request: pytest.FixtureRequest
) -> None:
    if name == "zero":
        request.getfixturevalue("deepspeed")
    script = PROGRAMS / f"{name}.py"
    together = execute(command=(*TORCHRUN, world, script))
    assert together.status == 0, together.err
    alone = execute("--world-size", world, "--rank", f"0-{world - 1}", command=(sys.executable, script))
    assert alone.status == 0, alone.err
    for rank in range(world):
        for figure in ("peak_allocated_bytes", "peak_requested_bytes", "communicators"):
            assert alone.of_rank(rank)[figure] == together.of_rank(rank)[figure], (rank, figure)
        assert alone.of_rank(rank)["unwritten_calls"] == []
        assert alone.of_rank(rank)["mismatch"] == ""
        assert alone.collectives(rank).keys() == together.collectives(rank).keys()


def test_tensors_of_a_collective_are_kept_in_virtual_time(execute: Exec, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        in_job("""
        import time

        def gather(numbers):
            gathered = torch.empty(2 * numbers, device=device)
            return dist.all_gather_into_tensor(gathered, torch.ones(numbers, device=device), async_op=True)

        works = [gather(1), gather(1 << 24)]
        torch.cuda.synchronize()
        time.sleep(0.3)  # PyTorch's watchdog looks three times
        works.append(gather(1))
        print("MiB held:", torch.cuda.memory_allocated() >> 20)
        for work in works:
            work.wait()
        print("MiB waited for:", torch.cuda.memory_allocated() >> 20)
    """)
    )
    done = execute("--world-size", 2, command=(sys.executable, program))
    assert done.status == 0, done.err
    # The gathered tensor is the result of a collective that is still there.
    assert re.findall(r"MiB .*: \d+", done.out) == ["MiB held: 192", "MiB waited for: 128"]


def test_sharding_takes_parameters_and_optimizer_state_off_a_rank(execute: Exec) -> None:
    script = PROGRAMS / "fsdp2.py"
    one, of_16 = (execute("--world-size", world, command=(sys.executable, script)) for world in (1, 16))
    parameters = of_16.collectives()["reduce_scatter"]["bytes"] / 3  # float32 gradients of three steps
    saved = one.of_rank(0)["peak_requested_bytes"] - of_16.of_rank(0)["peak_requested_bytes"]
    assert saved > 3 * parameters * 15 / 16  # parameters and the two moments of AdamW


def test_objects_and_small_numbers_reach_the_other_ranks(execute: Exec) -> None:
    script = PROGRAMS / "objects.py"
    together = execute(command=(*TORCHRUN, 2, script))
    alone = execute("--world-size", 2, "--rank", "0,1", command=(sys.executable, script))
    for done in (together, alone):
        assert done.status == 0, done.err
        # Ranks print at the same time, so one line may contain both texts.
        assert re.findall(r"run \d+ \[[^]]*\] \d", done.out) == ["run 7 [3, 3] 6"] * 2


def test_objects_take_the_memory_and_calls_of_their_tensors(execute: Exec, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        in_job("""
        def tell(*told):
            os.write(1, f"{rank} {torch.cuda.max_memory_allocated()} {told}\\n".encode())
            torch.cuda.reset_peak_memory_stats()

        objects = [None, None]
        dist.all_gather_object(objects, bytes(1_000_000))
        tell([len(one) for one in objects])
        dist.all_gather_object(objects, bytes(100 + rank))  # of other sizes than those of ranks that run later
        tell()
        objects = [bytes(50_000), 7] if rank == 0 else [None, None]
        dist.broadcast_object_list(objects, src=0)
        tell(len(objects[0]), objects[1])
        mine = [None]
        dist.scatter_object_list(mine, [bytes(1), bytes(1001)] if rank == 0 else None, src=0)
        tell(len(mine[0]))
        dist.gather_object(bytes(70_000), objects if rank == 1 else None, dst=1)
        tell([len(one) for one in objects] if rank == 1 else None)
        if rank == 0:
            dist.send_object_list([{"a": 1}, bytes(100_000)], dst=1)
        else:
            assert dist.recv_object_list(objects, src=0) == 0
            tell(objects[0], len(objects[1]))
    """)
    )
    alone = execute("--world-size", 2, "--rank", "0,1", command=(sys.executable, program))
    together = execute(command=(*TORCHRUN, 2, program))
    for done in (together, alone):
        assert done.status == 0, done.err
        assert [done.of_rank(rank)["value_reads"] for rank in range(2)] == [[], []]
        assert [done.of_rank(rank)["mismatch"] for rank in range(2)] == ["", ""]
    told = sorted(line for line in alone.out.splitlines() if line)
    assert told == sorted(line for line in together.out.splitlines() if line)
    assert "0 5002240 ([1000000, 1000000],)" in told  # gathered ones, one while it grows, and the smaller one before
    assert "1 101888 ({'a': 1}, 100000)" in told
    for rank in range(2):
        assert alone.of_rank(rank)["peak_requested_bytes"] == together.of_rank(rank)["peak_requested_bytes"]
        calls = [{name: each["calls"] for name, each in done.collectives(rank).items()} for done in (alone, together)]
        assert calls[0] == calls[1]


def test_objects_of_ranks_alone_that_go_through_the_host_take_no_memory(execute: Exec) -> None:
    script = in_job(
        """
        objects, mine, gathered = [bytes(9) if rank == 0 else None], [None, "stays"], [None, None]
        dist.broadcast_object_list(objects, src=0)
        dist.scatter_object_list(mine, ["a", "b"] if rank == 0 else None, src=0)
        dist.all_gather_object(gathered, 3)
        dist.gather_object(4, gathered if rank == 0 else None, dst=0)
        os.write(1, f"{rank} {len(objects[0])} {mine} {gathered} {torch.cuda.max_memory_allocated()}\\n".encode())
        """,
        '"cpu:gloo,cuda:nccl"',
    )
    done = execute("--world-size", 2, "--rank", "0,1", script=script)
    assert done.status == 0, done.err
    assert sorted(done.out.splitlines()) == ["0 9 ['a', 'stays'] [4, 4] 0", "1 9 ['b', 'stays'] [3, 3] 0"]


def test_an_object_of_a_rank_that_has_not_run_is_missing(execute: Exec) -> None:
    done = execute("--world-size", 2, "--rank", 1, command=(sys.executable, PROGRAMS / "objects.py"))
    assert done.status == 1
    assert "rank 1 runs alone and needs an object that rank 0 sends: run that one in the same command" in done.err
    assert "--rank 0-1 runs all of them" in done.err


def test_small_tensors_of_ranks_that_ran_before_are_theirs(execute: Exec) -> None:
    done = execute(
        "--world-size",
        2,
        "--rank",
        "0,1",
        script=in_job("""
        size = torch.tensor([1000 if rank == 0 else 7]).to(device)
        dist.broadcast(size, src=0)
        shape = torch.tensor([3, 4] if rank == 0 else [0, 0]).to(device)
        if rank == 0:
            dist.send(shape, dst=1)
        else:
            dist.recv(shape, src=0)
        print(rank, size.item(), shape.tolist())
        """),
    )
    assert done.status == 0, done.err
    assert sorted(done.out.splitlines()) == ["0 1000 [3, 4]", "1 1000 [3, 4]"]


@pytest.mark.parametrize("mesh", [False, True], ids=["world", "mesh"])
def test_collectives_of_ranks_alone_that_do_not_match_are_reported(execute: Exec, mesh: bool) -> None:
    done = execute(
        "--world-size",
        2,
        "--rank",
        "0,1",
        script=in_job(
            f"""
        group = dist.split_group(split_ranks=[[0, 1]]) if {mesh} else None
        dist.all_reduce(torch.zeros(8, device=device), group=group)
        dist.all_reduce(torch.zeros(10 + rank, device=device), group=group)
        """,
            '"nccl", device_id=device',
        ),
    )
    assert done.status == 1, done.err
    assert done.of_rank(0)["mismatch"] == ""
    found = done.of_rank(1)["mismatch"]
    assert re.search(r"rank 1 calls all_reduce of 44 bytes .*\.py:\d+, and rank 0 calls all_reduce of 40 bytes", found)


def test_a_rank_alone_that_calls_fewer_collectives_is_reported(execute: Exec) -> None:
    done = execute(
        *("--world-size", 2, "--rank", "0,1"),
        script="""
        import os, torch
        import torch.distributed as dist
        dist.init_process_group("nccl")
        for batch in range(3 - dist.get_rank()):
            dist.all_reduce(torch.zeros(8, device=f"cuda:{os.environ['LOCAL_RANK']}"))
        """,
    )
    assert done.status == 1, done.err
    found = done.of_rank(1)["mismatch"]
    assert re.search(
        r"rank 1 calls nothing more at the end of the program, and rank 0 calls all_reduce of 32 bytes .*\.py:\d+",
        found,
    )


def test_a_rank_alone_that_the_program_makes_another_is_refused(execute: Exec) -> None:
    done = execute(
        *("--world-size", 4, "--rank", "0,2"),
        script="""
        import torch.distributed as dist

        dist.init_process_group("nccl", init_method="tcp://localhost:1", rank=1, world_size=2)
        """,
    )
    assert done.status == 1
    assert "--world-size 4 runs rank 0 alone, but the program makes this process rank 1 of 2" in done.err
    assert "offprof exec --devices 2 -- COMMAND" in done.err


def test_ranks_that_need_objects_of_each_other_begin_anew(execute: Exec) -> None:
    script = """
        import os, torch
        import torch.distributed as dist
        rank = int(os.environ["RANK"])
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device)
        number = [1]
        for turn in range(2):
            for source in range(2):
                if rank == source:
                    number[0] += 1
                    dist.send_object_list(number, dst=1 - rank)
                else:
                    dist.recv_object_list(number, src=source)
        print(rank, number)
        dist.destroy_process_group()
    """
    done = execute("--world-size", 2, "--rank", "0,1", script=script)
    assert done.status == 0, done.err
    assert sorted(done.out.splitlines()) == ["0 [5]", "1 [5]"]
    assert "rank 0 needs an object that rank 1 sends, and begins anew after that one" in done.err
    assert [done.of_rank(rank)["communicators"] for rank in range(2)] == [1, 1]
    assert len(done.processes) == 2


LINEAR = """
    import os, torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(torch.nn.Linear(512, 512, bias=False).to(device), device_ids=[device.index])
    for _ in range(3):
        model(torch.randn(8, 512, device=device)).sum().backward()
    dist.destroy_process_group()
"""


def test_data_parallel_training_reduces_each_gradient_once(execute: Exec) -> None:
    done = execute("--world-size", 8, "--rank", 5, script=LINEAR)
    assert done.status == 0, done.err
    reduced = done.collectives(5)["all_reduce"]
    assert (reduced["calls"], reduced["bytes"]) == (3, 3 * 512 * 512 * 4)
    assert done.of_rank(5)["communicators"] == 1
    least, most = done.of_rank(5)["estimated_nccl_bytes"]
    assert 0 < least < most


def test_more_nodes_take_more_time(execute: Exec) -> None:
    on_one, on_two = (
        execute("--world-size", 8, "--nodes", nodes, script=LINEAR).collectives()["all_reduce"]["modelled_time_ns"]
        for nodes in (1, 2)
    )
    assert on_one < on_two


def test_slower_links_take_more_time(execute: Exec) -> None:
    usual, slow = (
        execute("--world-size", 8, *cluster, script=LINEAR).collectives()["all_reduce"]
        for cluster in ((), ("--cluster", "pcie-gen4"))
    )
    assert usual["modelled_time_ns"] < slow["modelled_time_ns"]
    for each in (usual, slow):
        low, high = each["modelled_time_range_ns"]["low"], each["modelled_time_range_ns"]["high"]
        assert low < each["modelled_time_ns"] < high


def test_modelled_times_do_not_depend_on_the_watchdog(execute: Exec) -> None:
    times = {execute("--world-size", 8, script=LINEAR).of_rank(0)["modelled_time_ns"] for _ in range(3)}
    assert len(times) == 1


def test_a_rank_finds_its_place_and_its_device(execute: Exec) -> None:
    done = execute(
        "--world-size",
        16,
        "--nodes",
        2,
        "--rank",
        13,
        script="""
        import os, torch

        print([os.environ[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")])
        torch.cuda.set_device(5)
        print(torch.cuda.device_count(), torch.zeros(10, device="cuda").device)
        """,
    )
    assert done.out.splitlines() == ["['13', '16', '5', '8']", "8 cuda:5"]
    assert done.of_rank(13)["peak_requested_bytes"] == 40
    assert done.report["world_size"] == 16


def test_a_launcher_that_does_not_tell_the_size_of_a_node_has_eight_devices_there(
    execute: Exec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "1024")
    assert execute(script="import torch; torch.zeros(1).cuda(); print(torch.cuda.device_count())").out == "8\n"


def test_groups_are_split_off_with_their_own_size(execute: Exec) -> None:
    done = execute(
        "--world-size",
        4,
        "--nodes",
        2,
        "--rank",
        3,
        script="""
        import os, torch
        import torch.distributed as dist

        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl", device_id=device)
        pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        gathered = torch.empty(2 * 1000, device=device)
        dist.all_gather_into_tensor(gathered, torch.empty(1000, device=device), group=pairs[1])
        dist.destroy_process_group()
        """,
    )
    assert done.status == 0, done.err
    assert done.collectives(3)["all_gather"]["bytes"] == 2 * 4000
    assert done.of_rank(3)["communicators"] == 2


@pytest.mark.parametrize("backend", ["nccl", "cpu:gloo,cuda:nccl"])
def test_groups_of_a_mesh_have_their_own_size(execute: Exec, backend: str) -> None:
    done = execute(
        "--world-size",
        8,
        "--nodes",
        2,
        "--rank",
        5,
        script=in_job(
            f"""
        from torch.distributed.device_mesh import init_device_mesh

        group = init_device_mesh("cuda", (2, 4), mesh_dim_names=("replicate", "shard")).get_group("shard")
        gathered = torch.empty(4 * 1000, device=device)
        dist.all_gather_into_tensor(gathered, torch.empty(1000, device=device), group=group)
        if "gloo" in "{backend}":
            dist.all_reduce(torch.ones(1), group=group)
        print(dist.get_world_size(group), dist.get_rank(group))
        """,
            f'"{backend}", device_id=device',  # so that the mesh splits the group
        ),
    )
    assert done.status == 0, done.err
    assert done.out == "4 1\n"
    assert done.collectives(5)["all_gather"]["bytes"] == 4 * 4000
    assert done.of_rank(5)["communicators"] == 3


def test_a_rank_saves_and_loads_its_part_of_a_checkpoint(execute: Exec, tmp_path: Path) -> None:
    done = execute(
        "--world-size",
        2,
        "--rank",
        "0,1",
        script=in_job(f"""
        import torch.distributed.checkpoint as checkpoint
        from torch.distributed.fsdp import fully_shard

        model = torch.nn.Linear(64, 64).cuda()
        fully_shard(model)
        folder = "{tmp_path}/saved"
        checkpoint.save({{"model": model.state_dict()}}, checkpoint_id=folder)
        checkpoint.load({{"model": model.state_dict()}}, checkpoint_id=folder)
        print(rank, len(os.listdir(folder)) > 0)
        """),
    )
    assert done.status == 0, done.err
    assert sorted(done.out.splitlines()) == ["0 True", "1 True"]


@pytest.mark.parametrize("keeps_parameters", [True, False], ids=["parameters", "flat"])
def test_a_rank_alone_gathers_the_optimizer_state_of_fsdp1(
    execute: Exec, tmp_path: Path, keeps_parameters: bool
) -> None:
    script = tmp_path / "saving.py"
    script.write_text(
        in_job(f"""
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

        layers = [torch.nn.Linear(256, 256, dtype=torch.bfloat16) for _ in range(3)]
        model = FSDP(torch.nn.Sequential(*layers).cuda(), use_orig_params={keeps_parameters}, device_id=device)
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.randn(8, 256, device=device, dtype=torch.bfloat16)).sum().backward()
        optimizer.step()
        state = FSDP.optim_state_dict(model, optimizer)
        line = f"{{rank}} {{sorted(state['state'])}} {{state['state']['0.weight']['exp_avg'].shape}}\\n"
        os.write(1, line.encode())  # whole, beside the other rank's
        """)
    )
    together = execute(command=(*TORCHRUN, 2, script))
    assert together.status == 0, together.err
    alone = execute("--world-size", 2, "--rank", "0,1", command=(sys.executable, script))
    assert alone.status == 0, alone.err
    assert sorted(alone.out.split("\n")) == sorted(together.out.split("\n"))
    for rank in range(2):
        for figure in ("peak_allocated_bytes", "peak_requested_bytes"):
            assert alone.of_rank(rank)[figure] == together.of_rank(rank)[figure], (rank, figure)


@pytest.mark.parametrize("backend", ["cpu:gloo,cuda:nccl", "cuda:nccl,cpu:gloo"])
def test_tensors_on_the_processor_are_gathered_too(execute: Exec, backend: str) -> None:
    done = execute(
        "--world-size",
        3,
        script=f"""
        import torch
        import torch.distributed as dist

        torch.cuda.set_device(0)
        dist.init_process_group("{backend}")
        gathered = [torch.empty(1) for _ in range(3)]
        dist.all_gather(gathered, torch.ones(1))
        dist.monitored_barrier(dist.new_group(backend="gloo"))
        print([tensor.item() for tensor in gathered], torch.zeros(1, device="cuda").item())
        dist.destroy_process_group()
        """,
    )
    assert done.status == 0, done.err
    assert done.out == "[1.0, 1.0, 1.0] 0.0\n"


def test_representative_ranks_are_the_stages_of_a_pipeline(execute: Exec) -> None:
    done = execute("--world-size", 3, "--rank", "auto", command=(sys.executable, PROGRAMS / "pipeline.py"))
    assert done.status == 0, done.err
    assert [process["rank"] for process in done.report["processes"]] == [0, 1, 2]


def test_stops_at_the_rank_that_raises(execute: Exec) -> None:
    done = execute(
        "--world-size",
        4,
        "--rank",
        "0-3",
        script="""
        import os, torch

        torch.zeros(1, device="cuda")
        if os.environ["RANK"] == "1":
            raise ValueError("no data")
        """,
    )
    assert done.status == 1
    assert "ValueError: no data" in done.err
    assert [process["rank"] for process in done.report["processes"]] == [0, 1]


def test_goes_on_after_a_rank_that_does_not_fit(execute: Exec) -> None:
    script = """
        import os, torch

        torch.ones(1 if os.environ["RANK"] != "1" else 1 << 30, device="cuda")
    """
    done = execute("--world-size", 3, "--rank", "0-2", "--device-memory", "1GiB", script=script)
    assert done.status == 1
    assert [process["out_of_memory_errors"] for process in done.report["processes"]] == [0, 1, 0]
    assert done.report["ranks_not_run"] == []


def test_what_fsdp_moves_to_the_host_is_not_read(execute: Exec) -> None:
    done = execute(
        "--world-size",
        2,
        script="""
        import torch
        import torch.distributed as dist
        from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard

        dist.init_process_group("cuda:nccl,cpu:gloo")
        model = torch.nn.Linear(512, 512, bias=False)
        fully_shard(model, offload_policy=CPUOffloadPolicy())
        model(torch.randn(8, 512, device="cuda")).sum().backward()
        dist.destroy_process_group()
        """,
    )
    assert done.of_rank(0)["value_reads"] == []


def test_no_thread_watches_groups_while_a_process_ends(execute: Exec) -> None:
    done = execute(
        "--world-size",
        2,
        script="""
        import atexit

        atexit.register(lambda: print(dist.is_initialized()))

        import torch
        import torch.distributed as dist

        dist.init_process_group("nccl")
        dist.all_reduce(torch.zeros(1, device="cuda"))
        print(dist.is_initialized())
        """,
    )
    assert done.out == "True\nFalse\n"


def test_a_process_uses_one_device(execute: Exec) -> None:
    done = execute(
        "--world-size",
        2,
        script="""
        import torch

        torch.zeros(1, device="cuda:0")
        try:
            torch.zeros(1, device="cuda:1")
        except RuntimeError as error:
            print("operation not supported" in str(error))
        """,
    )
    assert done.out == "True\n"
    assert done.of_rank(0)["unwritten_calls"] == [
        "cudaMalloc on a second device (a process has one: start a process for each, as torchrun does)"
    ]
