"""The programs that the tests run for real: downloaded or built once, cached, handed out by name.

What this proves: nothing by itself. It makes sure that a test which says "containerd 1.6" runs exactly the pinned program,
and that two test runs at the same time do not build it twice.

Two sources, both through the machine's own clients and settings:

* Debian packages (`apt-get download` + `dpkg -x`), each pinned to a version and the sha256 of its amd64 file. The mirror and the
  keyring are read from the machine's own apt configuration; package lists are kept in the cache, so the machine's are not touched.
* Go programs, built from the module proxy that the environment names, with the module files pinned under tests/testbed/go/<family>/.

Programs of a control plane (Kubernetes, etcd, kwok) are taken from the directories in RUNTIME_GATE_TOOLS where they are there, else
from PATH where they are of the pinned minor version, and built only else: a contributor who has them needs no Go.

A cache entry lies in ${XDG_CACHE_HOME:-~/.cache}/runtime_gate/<name>/<version>-<checksum>/ where the checksum covers everything
that decides its content: the package pins, or the module files, own sources, linker flags and Go version.

    python -m tests.testbed.tools list
    python -m tests.testbed.tools fetch containerd-2.1 cri-ask
    python -m tests.testbed.tools path containerd-2.1
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import glob
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import typing as t
from dataclasses import dataclass, field

GO_ROOT = pathlib.Path(__file__).resolve().parent / "go"
PYTHON_LINES = ("3.9", "3.11", "3.13")
LINES = ("1.4", "1.6", "1.7", "2.0", "2.1", "2.2", "2.3", "2.4")
"""The release lines of containerd that the tests run; each is the tool containerd-<line>."""
CRIO_LINES = ("1.34", "1.36")
"""The release lines of CRI-O that the tests run; each is the tool crio-<line>."""


class ToolError(Exception):
    """A program cannot be had here: says what, why and what to do."""


@dataclass(frozen=True)
class Package:
    """A Debian package: name, exact version, sha256 of its amd64 file."""

    name: str
    version: str
    sha256: str


@dataclass(frozen=True)
class DebianTool:
    """A program out of Debian packages of one suite. `program` is its path below the extracted root."""

    suite: str
    packages: tuple[Package, ...]
    program: str
    wrapper: str = ""  # a shell script laid at <entry>/bin/<name of the tool>; {root} and {self} are filled in

    def version(self) -> str:
        return self.packages[0].version

    def checksum(self) -> str:
        return _digest(self.suite, self.program, self.wrapper, *(f"{p.name}={p.version}:{p.sha256}" for p in self.packages))


@dataclass(frozen=True)
class GoTool:
    """A Go program of the module files in go/<family>. `module` is the requirement that gives its version."""

    family: str
    package: str
    program: str
    module: str = ""
    stamps: tuple[str, ...] = ()  # Go variables set to the version (with its v) by the linker
    literals: tuple[str, ...] = field(default=())  # name=value pairs for the linker; {version} {major} {minor} are filled in
    tags: tuple[str, ...] = ()  # build tags
    asks_version: tuple[str, ...] = ()  # arguments that make it print its version; a program that the machine has may then stand in

    @property
    def directory(self) -> pathlib.Path:
        return GO_ROOT / self.family

    def version(self) -> str:
        """Version of `module` in the family's go.mod (its own programs: "own")."""
        if not self.module:
            return "own"
        found = re.search(rf"^\s*(?:require )?{re.escape(self.module)} (v\S+)", (self.directory / "go.mod").read_text(), re.M)
        if not found:
            raise ToolError(f"{self.directory}/go.mod does not require {self.module}")
        return found[1]

    def flags(self) -> str:
        version = self.version()
        major, minor = (version.lstrip("v").split(".") + ["0", "0"])[:2]
        values = [f"{stamp}={version}" for stamp in self.stamps]
        values += [literal.format(version=version, major=major, minor=minor) for literal in self.literals]
        return " ".join(["-s", "-w", *(f"-X {value}" for value in values)])

    def checksum(self) -> str:
        sources = sorted(path for path in self.directory.rglob("*") if path.suffix in (".go", ".mod", ".sum"))
        return _digest(self.package, self.flags(), _go_version(), *(path.read_text() for path in sources), *self.tags)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


_CONTAINERD_V2 = "github.com/containerd/containerd/v2"


def _containerd_go(family: str) -> GoTool:
    return GoTool(
        family=family,
        package=f"{_CONTAINERD_V2}/cmd/containerd",
        program="containerd",
        module=_CONTAINERD_V2,
        stamps=(f"{_CONTAINERD_V2}/version.Version",),
    )


def _crio(family: str) -> GoTool:
    """CRI-O without cgo: without seccomp and without the graph drivers that need C; nothing of that decides which handlers are loaded."""
    return GoTool(
        family=family,
        package="github.com/cri-o/cri-o/cmd/crio",
        program="crio",
        module="github.com/cri-o/cri-o",
        tags=("containers_image_ostree_stub", "containers_image_openpgp", "exclude_graphdriver_btrfs", "btrfs_noversion"),
    )


_KUBERNETES_STAMPS = ("k8s.io/component-base/version.gitVersion", "k8s.io/client-go/pkg/version.gitVersion")
_KUBERNETES_LITERALS = tuple(
    f"{package}.{name}={value}"
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    for name, value in (("gitMajor", "{major}"), ("gitMinor", "{minor}"), ("gitTreeState", "clean"))
)


def _kubernetes(program: str, asks_version: tuple[str, ...] = ("--version",)) -> GoTool:
    return GoTool(
        family="kubernetes",
        package=f"k8s.io/kubernetes/cmd/{program}",
        program=program,
        module="k8s.io/kubernetes",
        stamps=_KUBERNETES_STAMPS,
        literals=_KUBERNETES_LITERALS,
        asks_version=asks_version,
    )


_PYTHON_WRAPPER = """#!/bin/sh
# Debian's interpreter with its own standard library; libraries that this machine may lack come from the same suite.
export PYTHONHOME={root}/usr PYTHONDONTWRITEBYTECODE=1
LD_LIBRARY_PATH={root}/usr/lib/x86_64-linux-gnu exec {root}/{program} "$@"
"""

_PYTHON_LOADER_WRAPPER = """#!/bin/sh
# Debian's interpreter under the C library of its own suite: this machine's may be older.
export PYTHONHOME={root}/usr PYTHONDONTWRITEBYTECODE=1
libraries={root}/usr/lib/x86_64-linux-gnu:{root}/lib/x86_64-linux-gnu
for loader in {root}/usr/lib64/ld-linux-x86-64.so.2 {root}/lib64/ld-linux-x86-64.so.2; do
    [ -e "$loader" ] && exec "$loader" --argv0 "$0" --library-path "$libraries" {root}/{program} "$@"
done
echo "no loader under {root}" >&2; exit 127
"""

TOOLS: dict[str, DebianTool | GoTool] = {
    "containerd-1.4": DebianTool(
        "bullseye",
        (Package("containerd", "1.4.13~ds1-1~deb11u4", "6384a6a2bf90dc39b22d0b21e57a3b523129b7efd80c345b041f939d8689a1e2"),),
        "usr/bin/containerd",
    ),
    "containerd-1.6": DebianTool(
        "bookworm",
        (Package("containerd", "1.6.20~ds1-1+deb12u3", "8669d264eeb0fcdb4a0b1ba436ab88ec5dafde4a66e1278ec279d830db4c2216"),),
        "usr/bin/containerd",
    ),
    "containerd-1.7": DebianTool(
        "trixie",
        (Package("containerd", "1.7.24~ds1-6+deb13u1", "ed708deb96fe476a3bce4efa5c0538dfbcf717ab9a7c7944ba7260342c25899c"),),
        "usr/bin/containerd",
    ),
    "containerd-2.1": DebianTool(
        "forky",
        (Package("containerd", "2.1.9+ds1-5", "2dda86ce7033fd612fc50e136679d8174ccad680eb29cd4611e0d2a1b84cf591"),),
        "usr/bin/containerd",
    ),
    "containerd-2.0": _containerd_go("containerd-2.0"),
    "containerd-2.2": _containerd_go("containerd-2.2"),
    "containerd-2.3": _containerd_go("containerd-2.3"),
    "containerd-2.3.4": _containerd_go("containerd-2.3.4"),
    "containerd-2.4": _containerd_go("containerd-2.4"),
    "crio-1.34": _crio("crio-1.34"),
    "crio-1.36": _crio("crio-1.36"),
    "runc": DebianTool(
        "bookworm",
        (Package("runc", "1.1.5+ds1-1+deb12u1", "a00351f8c0318de0b424ecf5cd0fdb69880a89f3511cae4f6fff7de3e57881c5"),),
        "usr/sbin/runc",
    ),
    "python-3.9": DebianTool(
        "bullseye",
        (
            Package("python3.9-minimal", "3.9.2-1", "5d6003c5c20223a2547ac4976e09a9ec778dbe351507a6292bef3b60df5f4aa7"),
            Package("libpython3.9-minimal", "3.9.2-1", "594283526d67e03e3c4e96534f6bfe5da1bf41da5d49360553c9b79fbf08c4ab"),
            Package("libpython3.9-stdlib", "3.9.2-1", "32ac64d959ac2dbc5bb289532fc9834dab8f671b5455695a3a9315aad973c65b"),
            Package("libssl1.1", "1.1.1w-0+deb11u1", "aadf8b4b197335645b230c2839b4517aa444fd2e8f434e5438c48a18857988f7"),
            Package("libffi7", "3.3-6", "30ca89bfddae5fa6e0a2a044f22b6e50cd17c4bc6bc850c579819aeab7101f0f"),
            Package("libmpdec3", "2.5.1-1", "816404866f754d5662d69db50072018dccb78cf372fc38e0be961fab0f57d741"),
        ),
        "usr/bin/python3.9",
        _PYTHON_WRAPPER,
    ),
    "python-3.11": DebianTool(
        "bookworm",
        (
            Package("python3.11-minimal", "3.11.2-6+deb12u8", "4aba533f7cc5e7b93b7ff24482840e96813f5bcde9cce028395b65a0d799ccee"),
            Package("libpython3.11-minimal", "3.11.2-6+deb12u8", "f3beaa03994ffedacf73c43a0843d53b062d347115d8af65bee2034552a4e6f9"),
            Package("libpython3.11-stdlib", "3.11.2-6+deb12u8", "890b3540dad8a1ccc0deeca025db735bcc82629a76adacbe3b50fcc06ed528ca"),
        ),
        "usr/bin/python3.11",
        _PYTHON_WRAPPER,
    ),
    "python-3.13": DebianTool(
        "trixie",
        (
            Package("python3.13-minimal", "3.13.5-2+deb13u5", "c1fda9e7b1bf15b2fa75a238d8a8710e142fe14c722fc650c5fc614f078c9073"),
            Package("libpython3.13-minimal", "3.13.5-2+deb13u5", "a4aa6a9a8c77f87bfe545e1d14ec42c001d189ace90e3aa75deec882b39dee49"),
            Package("libpython3.13-stdlib", "3.13.5-2+deb13u5", "db161322a3481d2c0c3b9a3b9a03c3ab0e2b1718f54b88755fb4a3f939165b84"),
            Package("libc6", "2.41-12+deb13u5", "b59b0625cd1a791375d40dab23a4d5d3d0641e3d0a773501becdc3725b7f99cf"),
            Package("zlib1g", "1:1.3.dfsg+really1.3.1-1+deb13u1", "8c27c342230503b73dfde629642c3b352e87b554e06d60cf58772f236a305ceb"),
            Package("libexpat1", "2.9.0-1~deb13u1", "feff874772cae904ae4d24e917b35664952bec4b4ae9100a4edda5a7fa746832"),
            Package("libssl3t64", "3.5.9-1~deb13u1", "ffefb9af363e0e4592251b2533eb06453c8e470f7772e40263c4b2129251a6d5"),
            Package("libzstd1", "1.5.7+dfsg-1", "2f6a2aeacfc925eba8b00ac9139bc4bfccf8cacb09eb93de067074b26948eef9"),
            Package("libffi8", "3.4.8-2", "0ebdc340de33333639c3c63874cd4b15ac2e83dfa1ef3053b7eefaf4919f4f68"),
            Package("libbz2-1.0", "1.0.8-6", "cba4cda04244b5e481bb15524bc3c983a7d1b6f330013b9b381706a2fcb65310"),
            Package("liblzma5", "5.8.1-1+deb13u2", "b38acab30f295bf1066a6632e31cbd0a1980f2924b38040cda131d5dea5384ec"),
        ),
        "usr/bin/python3.13",
        _PYTHON_LOADER_WRAPPER,
    ),
    "crictl": GoTool("crictl", "sigs.k8s.io/cri-tools/cmd/crictl", "crictl", "sigs.k8s.io/cri-tools", stamps=("sigs.k8s.io/cri-tools/pkg/version.Version",)),
    "etcd": GoTool("etcd", "go.etcd.io/etcd/server/v3", "etcd", "go.etcd.io/etcd/server/v3", asks_version=("--version",)),
    "kube-apiserver": _kubernetes("kube-apiserver"),
    "kube-controller-manager": _kubernetes("kube-controller-manager"),
    "kube-scheduler": _kubernetes("kube-scheduler"),
    "kubectl": _kubernetes("kubectl", ("version", "--client")),
    "kubelet": _kubernetes("kubelet"),
    "kwok": GoTool("kwok", "sigs.k8s.io/kwok/cmd/kwok", "kwok", "sigs.k8s.io/kwok", asks_version=("--version",)),
    "cri-ask": GoTool("cri-ask", "./cmd/cri-ask", "cri-ask"),
    "stand-in": GoTool("cri-ask", "./cmd/stand-in", "stand-in"),
}


def cache_root() -> pathlib.Path:
    """The cache directory; made if need be."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    root = pathlib.Path(base) / "runtime_gate"
    root.mkdir(parents=True, exist_ok=True)
    return root


@contextlib.contextmanager
def locked(name: str) -> t.Iterator[None]:
    """Holds the lock file of one cache entry; a second run waits and then finds the work done."""
    folder = cache_root() / "locks"
    folder.mkdir(exist_ok=True)
    with open(folder / f"{name}.lock", "w", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _run(command: list[str], **options: t.Any) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **options)
    if done.returncode:
        raise ToolError(f"{' '.join(command[:6])} … failed with {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout


def _go_version() -> str:
    if not shutil.which("go"):
        raise ToolError("go is not on PATH: install Go 1.26 or later (the test bed builds containerd 2.x and its own client)")
    return _run(["go", "env", "GOVERSION", "GOARCH"])


def entry(name: str) -> pathlib.Path:
    """The cache directory of a tool, whether or not it has been filled."""
    spec = _spec(name)
    return cache_root() / name / f"{spec.version()}-{spec.checksum()}"


def _spec(name: str) -> DebianTool | GoTool:
    if name not in TOOLS:
        raise ToolError(f"no such tool: {name} (known: {', '.join(TOOLS)})")
    return TOOLS[name]


def _given(spec: GoTool) -> pathlib.Path | None:
    """The program that the person or the machine brings: of RUNTIME_GATE_TOOLS (directories, as in PATH) as it is, of PATH only if
    it says the pinned minor version, because a kubectl or etcd of any age may lie there."""
    if given := shutil.which(spec.program, path=os.environ.get("RUNTIME_GATE_TOOLS", "")):
        return pathlib.Path(given)
    found = shutil.which(spec.program)
    return pathlib.Path(found) if found and _says_minor((found, *spec.asks_version), spec.version()) else None


@functools.lru_cache(maxsize=None)  # kubectl is asked for by each call of it
def _says_minor(command: tuple[str, ...], version: str) -> bool:
    """Whether what a program prints of itself is a version of the same minor release."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return False
    minor = ".".join(version.lstrip("v").split(".")[:2])
    said = re.search(r"\bv?(\d+\.\d+)\.\d+\S*", done.stdout)
    return done.returncode == 0 and bool(said) and said[1] == minor


def tool(name: str) -> pathlib.Path:
    """Path of the program `name`, built or downloaded first if the cache has not got it.

    Raises ToolError with the reason when it cannot be had.
    """
    spec = _spec(name)
    if isinstance(spec, GoTool) and spec.asks_version and (given := _given(spec)):
        return given
    return _cached(name, spec, entry(name))


def _cached(name: str, spec: DebianTool | GoTool, home: pathlib.Path) -> pathlib.Path:
    """The program in its cache entry, filled first if it is not there."""
    program = _program(name, spec, home)
    if program.exists():
        return program
    with locked(name):
        if program.exists():
            return program
        home.parent.mkdir(parents=True, exist_ok=True)
        draft = pathlib.Path(tempfile.mkdtemp(prefix=".draft-", dir=home.parent))
        try:
            (_build_debian if isinstance(spec, DebianTool) else _build_go)(name, spec, draft, home)
            if home.exists():  # an entry that was cut short by an older run
                shutil.rmtree(home)
            draft.chmod(0o755)
            draft.rename(home)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    if not program.exists():
        raise ToolError(f"{name}: {program} is not there after the build")
    return program


def _program(name: str, spec: DebianTool | GoTool, home: pathlib.Path) -> pathlib.Path:
    if isinstance(spec, GoTool):
        return home / "bin" / spec.program
    return home / "bin" / name if spec.wrapper else home / "root" / spec.program


# Debian ------------------------------------------------------------------------------------------------------------------------


def _apt_files() -> list[str]:
    """The source files of the machine's own apt, in apt's order."""
    shell = _run(["apt-config", "shell", "LIST", "Dir::Etc::sourcelist/f", "PARTS", "Dir::Etc::sourceparts/d"])
    values = dict(re.findall(r"(\w+)='([^']*)'", shell))
    parts = values.get("PARTS", "/etc/apt/sources.list.d/")
    return [path for path in [values.get("LIST", ""), *sorted(glob.glob(parts + "/*.list") + glob.glob(parts + "/*.sources"))] if os.path.isfile(path)]


def parse_sources(text: str, deb822: bool) -> list[tuple[str, str]]:
    """(URI, Signed-By or "") of each binary source with component main in an apt source file."""
    found = []
    if deb822:
        for stanza in re.split(r"\n\s*\n", re.sub(r"(?m)^#.*\n?", "", text)):
            fields = {key.lower(): value.strip() for key, value in re.findall(r"(?m)^([A-Za-z-]+):((?:.*)(?:\n[ \t].*)*)", stanza)}
            if "deb" in fields.get("types", "").split() and "main" in fields.get("components", "").split():
                if fields.get("enabled", "yes").lower() not in ("no", "false", "0"):
                    found += [(uri, fields.get("signed-by", "")) for uri in fields.get("uris", "").split()]
        return found
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+\S+\s+(.*)", line)
        if match and "main" in match[3].split():
            signed = re.search(r"signed-by=(\S+)", match[1] or "")
            found.append((match[2], signed[1] if signed else ""))
    return found


def debian_source() -> tuple[str, str]:
    """(URI, Signed-By) of the Debian archive that this machine's apt uses.

    The archive is told from other repositories by its path: it ends in /debian. Raises ToolError when there is none.
    """
    for path in _apt_files():
        with open(path, encoding="utf-8") as handle:
            for uri, signed in parse_sources(handle.read(), path.endswith(".sources")):
                if uri.rstrip("/").endswith("/debian"):
                    return uri, signed
    raise ToolError(
        "no Debian archive among this machine's apt sources (looked for a URI that ends in /debian, component main): "
        "the containerd lines 1.4, 1.6, 1.7 and 2.1 come from Debian's packages"
    )


def _apt_options(suite: str) -> list[str]:
    """apt options that make it read one suite of the machine's Debian archive with lists of its own."""
    uri, signed = debian_source()
    home = cache_root() / "apt" / suite
    (home / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (home / "sources").mkdir(exist_ok=True)
    text = f"Types: deb\nURIs: {uri}\nSuites: {suite}\nComponents: main\n" + (f"Signed-By: {signed}\n" if signed else "")
    (home / "sources" / "archive.sources").write_text(text)
    return [
        "-o", "Dir::Etc::SourceList=/dev/null",
        "-o", f"Dir::Etc::SourceParts={home}/sources",
        "-o", f"Dir::State::Lists={home}/lists",
        "-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=",
        "-o", "APT::Sandbox::User=root",
        "-o", "APT::Update::Post-Invoke-Success::=true",
        "-o", "Acquire::Retries=2",
    ]  # fmt: skip


def _apt_knows(options: list[str], package: Package) -> bool:
    done = subprocess.run(["apt-cache", *options, "show", f"{package.name}={package.version}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return f"Version: {package.version}\n" in done.stdout


def _build_debian(name: str, spec: DebianTool, draft: pathlib.Path, home: pathlib.Path) -> None:
    with locked(f"apt-{spec.suite}"):
        options = _apt_options(spec.suite)
        if not all(_apt_knows(options, package) for package in spec.packages):
            _run(["apt-get", *options, "update", "-q"])
        for package in spec.packages:
            if not _apt_knows(options, package):
                raise ToolError(
                    f"{name}: the Debian archive no longer serves {package.name} {package.version} in {spec.suite}; "
                    f"pin the version it serves now (version and sha256) in {__file__}"
                )
        packages = draft / "packages"
        packages.mkdir()
        _run(["apt-get", *options, "download", "-q", *(f"{p.name}={p.version}" for p in spec.packages)], cwd=packages)
    for package in spec.packages:
        (archive,) = packages.glob(f"{package.name}_*.deb")
        if archive.name.endswith("_amd64.deb") and hashlib.sha256(archive.read_bytes()).hexdigest() != package.sha256:
            raise ToolError(f"{name}: {archive.name} has another sha256 than the pinned {package.sha256}")
        _run(["dpkg", "-x", str(archive), str(draft / "root")])
    shutil.rmtree(packages)
    if spec.wrapper:
        _write_wrapper(draft / "bin" / name, spec, home / "root")


def _write_wrapper(path: pathlib.Path, spec: DebianTool, root: pathlib.Path) -> None:
    path.parent.mkdir()
    path.write_text(spec.wrapper.format(root=root, program=spec.program))
    path.chmod(0o755)


# Go ----------------------------------------------------------------------------------------------------------------------------


def _build_go(name: str, spec: GoTool, draft: pathlib.Path, home: pathlib.Path) -> None:
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false -trimpath", "GOWORK": "off"}
    (draft / "bin").mkdir()
    output = draft / "bin" / spec.program
    with locked("go-build"):  # one build at a time: each wants both cores and up to 2 GiB
        tags = ["-tags", ",".join(spec.tags)] if spec.tags else []
        _run(["nice", "go", "build", "-ldflags", spec.flags(), *tags, "-o", str(output), spec.package], cwd=spec.directory, env=environment)


def main(arguments: list[str]) -> int:
    """The command line; returns the exit code."""
    commands: dict[str, t.Callable[[str], str]] = {"fetch": lambda name: str(tool(name)), "path": lambda name: str(tool(name))}
    if arguments == ["list"]:
        for name in TOOLS:
            print(f"{name:20} {_spec(name).version():24} {'cached' if _program(name, _spec(name), entry(name)).exists() else '-'}")
        return 0
    if len(arguments) < 2 or arguments[0] not in commands:
        print((__doc__ or "").split("\n\n")[-1], file=sys.stderr)
        return 2
    for name in TOOLS if arguments[1:] == ["all"] else arguments[1:]:
        try:
            print(commands[arguments[0]](name), flush=True)
        except ToolError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
