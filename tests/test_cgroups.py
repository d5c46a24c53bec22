"""Quotas of CPUs read from files laid out as kernels and containers lay them out."""

import pytest

from timesink.cgroups import cpu_quota

V2_MOUNT = "30 24 0:26 {root} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
V1_MOUNT = "33 32 0:28 {root} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct"
V1_MEMORY = "34 32 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"


def lay_out(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def v2(root, group="/", mounted="/", **quotas):
    """Lay out cgroup v2; a quota's name is the directory, with _ for /."""
    files = {
        "proc/self/cgroup": f"0::{group}",
        "proc/self/mountinfo": V2_MOUNT.format(root=mounted),
    }
    for name, quota in quotas.items():
        files[f"sys/fs/cgroup/{name.replace('_', '/')}/cpu.max"] = quota
    return lay_out(root, files)


def v1(root, group="/", mounted="/", **quotas):
    mounts = "\n".join([V1_MEMORY, V1_MOUNT.format(root=mounted)])
    groups = f"5:memory:/elsewhere\n4:cpu,cpuacct:{group}\n0::/"
    files = {"proc/self/cgroup": groups, "proc/self/mountinfo": mounts}
    for name, (quota, period) in quotas.items():
        place = f"sys/fs/cgroup/cpu,cpuacct/{name.replace('_', '/')}"
        files |= {f"{place}/cpu.cfs_quota_us": quota, f"{place}/cpu.cfs_period_us": period}
    return lay_out(root, files)


@pytest.mark.parametrize(
    ("quota", "cpus"),
    [
        ("200000 100000", 2),
        ("150000 100000", 1),
        ("350000 100000", 3),
        ("10000 100000", 1),
        ("max 100000", None),
        ("nonsense", None),
        ("100000 0", None),
    ],
)
def test_a_quota_is_rounded_down_to_whole_cpus_but_not_to_none(tmp_path, quota, cpus):
    assert cpu_quota(v2(tmp_path, _=quota)) == cpus


def test_the_least_quota_on_the_way_up_counts(tmp_path):
    root = v2(
        tmp_path,
        "/pods/pod/box",
        pods="800000 100000",
        pods_pod="300000 100000",
        pods_pod_box="max 100000",
        pods_other="100000 100000",
    )
    assert cpu_quota(root) == 3


def test_a_group_deeper_than_its_parents_may_have_less(tmp_path):
    root = v2(tmp_path, "/pods/pod", pods="800000 100000", pods_pod="400000 200000")
    assert cpu_quota(root) == 2


def test_older_groups_have_quotas_too(tmp_path):
    assert cpu_quota(v1(tmp_path, _=("250000", "100000"))) == 2


def test_minus_one_is_no_limit(tmp_path):
    root = v1(tmp_path, "/box", box=("-1", "100000"), _=("-1", "100000"))
    assert cpu_quota(root) is None


def test_the_least_quota_counts_in_older_groups_too(tmp_path):
    root = v1(tmp_path, "/a/b", a=("100000", "50000"), a_b=("900000", "100000"))
    assert cpu_quota(root) == 2


@pytest.mark.parametrize("mounted", ["/docker/c0ffee", "/"])
def test_a_container_without_a_namespace_finds_its_quota_at_the_mount(tmp_path, mounted):
    root = v1(tmp_path, "/docker/c0ffee", mounted, _=("300000", "100000"))
    assert cpu_quota(root) == 3


def test_a_group_below_what_is_mounted_is_found_there(tmp_path):
    root = v2(tmp_path, "/docker/c0ffee/inner", "/docker/c0ffee", inner="100000 100000")
    assert cpu_quota(root) == 1


def test_a_process_outside_its_namespace_has_the_mount_s_quota(tmp_path):
    assert cpu_quota(v2(tmp_path, "/../outside", _="200000 100000")) == 2


def test_both_kinds_at_once_are_both_heeded(tmp_path):
    root = v1(tmp_path, _=("300000", "100000"))
    mounts = (root / "proc/self/mountinfo").read_text()
    unified = "35 32 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"
    (root / "proc/self/mountinfo").write_text(f"{mounts}{unified}\n")
    assert cpu_quota(root) == 3
    lay_out(root, {"sys/fs/cgroup/unified/cpu.max": "200000 100000"})
    assert cpu_quota(root) == 2


def test_where_the_kernel_does_not_tell_the_mounts_the_usual_ones_are_read(tmp_path):
    root = v2(tmp_path, _="200000 100000")
    (root / "proc/self/mountinfo").unlink()
    assert cpu_quota(root) == 2


def test_a_system_without_groups_has_no_quota(tmp_path):
    assert cpu_quota(tmp_path) is None
