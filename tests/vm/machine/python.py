# SPDX-License-Identifier: Apache-2.0
"""This machine's Python for a guest that has none, with those modules alone that some programs import.

For doubles of servers that a test runs in the guest: /opt/headroom/bin/NAME.py. Modules are compiled and lie in one
archive, as they are: an emulated guest would take a minute to do either.
"""

import json
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from .payload import PREFIX, bundle

INTERPRETER = "/usr/bin/python3"

# Run by the interpreter that is packed: which modules a program imports, wherever it does, and where they are.
FIND = """
import json, modulefinder, sys, sysconfig
found = {}
for program in sys.argv[1:]:
    finder = modulefinder.ModuleFinder()
    finder.run_script(program)
    for name in ("utf_8", "ascii", "latin_1", "idna", "cp437"):  # asked for by name alone
        finder.import_hook("encodings." + name)
    found |= {name: module.__file__ for name, module in finder.modules.items() if module.__file__}
found.pop("__main__", None)
json.dump({"version": sysconfig.get_python_version(), "library": sysconfig.get_path("stdlib"), "modules": found}, sys.stdout)
"""
# Compiles the first of two files into the second.
COMPILE = """
import py_compile, sys
for source, target in zip(sys.argv[1::2], sys.argv[2::2]):
    py_compile.compile(source, target, dfile=source, doraise=True)
"""


def interpreter(script: str, *words: str) -> str:
    return subprocess.run([INTERPRETER, "-c", script, *words], text=True, check=True, stdout=subprocess.PIPE).stdout


def bundle_python(dest: Path, programs: list[Path]) -> None:
    """Into a payload folder."""
    found = json.loads(interpreter(FIND, *map(str, programs)))
    library, version, modules = Path(found["library"]), found["version"], found["modules"]
    sources = {Path(file).relative_to(library) for file in modules.values() if file.endswith(".py")}
    bundle([INTERPRETER], dest)
    for file in (Path(file) for file in modules.values() if file.endswith(".so")):
        bundle([file], dest)
        target = dest / "lib" / f"python{version}" / "lib-dynload"
        target.mkdir(parents=True, exist_ok=True)
        (dest / "bin" / file.name).rename(target / file.name)
    with tempfile.TemporaryDirectory() as scratch:
        compiled = {name: Path(scratch, name).with_suffix(".pyc") for name in sorted(sources)}
        interpreter(COMPILE, *(str(each) for name, target in compiled.items() for each in (library / name, target)))
        with zipfile.ZipFile(dest / "lib" / f"python{version.replace('.', '')}.zip", "w", zipfile.ZIP_STORED) as archive:
            for name, target in compiled.items():
                archive.write(target, name.with_suffix(".pyc"))
    (dest / "libexec").mkdir(exist_ok=True)
    (dest / "bin" / "python3").rename(dest / "libexec" / "python3")
    wrapper = dest / "bin" / "python3"
    wrapper.write_text(f"#!/bin/sh\nPYTHONHOME={PREFIX} PYTHONDONTWRITEBYTECODE=1 exec {PREFIX}/libexec/python3 -S \"$@\"\n")
    wrapper.chmod(0o755)
    for program in programs:
        shutil.copy(program, dest / "bin")
