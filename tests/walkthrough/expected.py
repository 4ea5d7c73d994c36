"""What the walkthrough's files must say, and where that is known from."""

from __future__ import annotations

import pathlib
import typing as t

# A drop-in of version 2 below a root file of version 3: lost where the root file has a runtimes table of its own, on 2.0 to 2.2;
# loaded from 2.3 on, which migrates each file by itself (containerd #12608).
LOSES_MIXED = ("2.0", "2.1", "2.2")


def differences(work: pathlib.Path, lines: t.Sequence[str]) -> list[str]:
    """One sentence for each value of the lab that is not what the real programs are known to do."""
    wanted: dict[str, dict[str, str]] = {
        # The API server stores any label (validation of RuntimeClass); the sandbox is the first that the runtime is asked for.
        "unvalidated.txt": {"API_VALIDATES_HANDLER": "no", "FAILS_AT": "sandbox", "VISIBLE_TO": "node"},
        # 900m + 250m on one cpu.
        "overhead.txt": {"FITS": "gpu-tight-a", "OVER": "Pending", "OVERHEAD_CPU": "250m"},
        "imports.txt": {"GLOB": f"{work}/etc/conf.d/*.conf", "MATCHED": "0", "DROPIN_EXISTS": "yes", "LOADED_NVIDIA": "no"},
        "version3.txt": {"LOADED": "crun nvidia runc", "DEFAULT_RUNTIME": "runc", "NVIDIA_BINARY": "/usr/bin/nvidia-container-runtime", "MATCHED": "1"},
        # The pod that names no class is the one that a default reaches.
        "blast.txt": {"DEFAULT_RUNTIME": "nvidia", "AFFECTED": "gpu-rt/fits", "NEEDS_RUNTIMECLASS": "no", "BLAST_RADIUS": "node"},
    }
    found = [
        f"out/{name}: {key} is {read_values(work / 'out' / name).get(key)!r}, not {value!r}"
        for name, values in wanted.items()
        for key, value in values.items()
        if read_values(work / "out" / name).get(key) != value
    ]
    return found + _texts(work) + _mixed(work, lines)


def read_values(path: pathlib.Path) -> dict[str, str]:
    """KEY=value lines of a file; comments are left out. A file that is not there has none."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))


def _texts(work: pathlib.Path) -> list[str]:
    said = (work / "out" / "unvalidated.txt").read_text(encoding="utf-8")
    found = [] if 'no runtime for "nvidai" is configured' in said else ["out/unvalidated.txt lacks the words of the daemon"]
    missing = (work / "out" / "crosscheck.txt").read_text(encoding="utf-8").split()
    if missing != ["MISSING=nvidai", "MISSING=nvidia-cdi"]:
        found.append(f"out/crosscheck.txt says {missing}")
    return found


def _mixed(work: pathlib.Path, lines: t.Sequence[str]) -> list[str]:
    said = (work / "out" / "mixed.txt").read_text(encoding="utf-8").splitlines()[1:]
    two = [line for line in lines if line.startswith("2.")]
    found = [] if len(said) == len(two) else [f"out/mixed.txt has {len(said)} lines for {len(two)} releases"]
    for line, text in zip(two, said):
        loaded = "no" if line in LOSES_MIXED else "yes"
        if f"CONTAINERD={line}." not in text.replace("=v", "=") or not text.endswith(f"MATCHED=1 LOADED_NVIDIA={loaded}"):
            found.append(f"out/mixed.txt: {text!r} for {line}, where nvidia is loaded: {loaded}")
    return found
