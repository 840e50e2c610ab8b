"""How every kernel is compiled and cached.

Numba stamps a cached function with the state of the one file it is defined in, so a cached driver
would go on calling a kernel that has since been regenerated in another file. Here the stamp, and the
name of the folder, hold a digest of the text of every module in this package, besides the Numba
version and the processor. A folder that cannot be written, read or trusted costs one warning and a
compilation, never a failure.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import tempfile
import warnings
from pathlib import Path

import llvmlite.binding
import llvmlite.ir
import numba
import platformdirs
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator
from numba.core.ccallback import CFunc
from numba.extending import intrinsic

PACKAGE = Path(__file__).resolve().parent


class CacheWarning(UserWarning):
    """The folder of compiled kernels could not be used as it is."""


@functools.cache
def source_digest() -> str:
    """Digest of the text of every module of kernels, in the order of their names."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _is_private(folder: Path) -> bool:
    """Whether only this user can write to a folder in a place that everybody can write to."""
    if not hasattr(os, "getuid"):
        return True
    status = os.lstat(folder)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022


def _usable(folder: Path) -> bool:
    """Create a folder if need be, and say whether files can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@functools.cache
def cache_folder() -> Path | None:
    """The folder of compiled kernels, created on first use; None where nothing can be kept.

    It lies under ``NUMBA_CACHE_DIR`` if that is set, else under the user's cache folder, else (with a
    warning) in a folder of this user's own under the system's temporary folder.
    """
    version = numba.__version__
    name = f"kernels-{source_digest()[:16]}-numba{version}-{llvmlite.binding.get_host_cpu_name()}"
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(chosen) if chosen else Path(platformdirs.user_cache_dir("markov-landscape"))
    if _usable(home / name):
        return home / name
    owner = os.getuid() if hasattr(os, "getuid") else "user"
    spare = Path(tempfile.gettempdir()) / f"markov-landscape-{owner}"
    if _usable(spare) and _is_private(spare) and _usable(spare / name):
        _warn(f"The cache folder {home} cannot be written; compiled kernels are kept in {spare}.")
        return spare / name
    _warn(f"The cache folder {home} cannot be written; kernels are compiled anew in every process.")
    return None


@functools.cache
def _warn_once(kind: str, text: str) -> None:
    warnings.warn(text, CacheWarning, stacklevel=2)


def _warn(text: str) -> None:
    """Warn at most once in a process, whatever goes wrong with the cache and however often."""
    if not _warn_once.cache_info().currsize:
        _warn_once("cache", text)


@functools.cache
def _file_digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


class _Locator(_CacheLocator):
    """Puts a function's cache files into `cache_folder` and stamps them with `source_digest`."""

    def __init__(self, function, path):
        self._py_file = path
        self._line = function.__code__.co_firstlineno
        self._own = _file_digest(path)

    def get_cache_path(self):
        return str(cache_folder())

    def get_source_stamp(self):
        return source_digest(), self._own

    def get_disambiguator(self):
        return f"{self._own[:8]}-{self._line}"

    @classmethod
    def from_function(cls, function, path):
        return cls(function, path)


class _Implementation(CompileResultCacheImpl):
    _locator_classes = [_Locator]


class _Store(IndexDataCacheFile):
    """Cache files whose compiled code is loaded only if its digest is right."""

    def _load_data(self, name):
        data = Path(self._data_path(name)).read_bytes()
        digest, payload = data[:32], data[32:]
        if hashlib.sha256(payload).digest() != digest:
            raise EOFError(f"{name} is damaged")
        return numba.core.caching.pickle.loads(payload)

    def _save_data(self, name, data):
        payload = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(hashlib.sha256(payload).digest() + payload)


class KernelCache(FunctionCache):
    """Numba's function cache, for which a damaged or vanished file is a miss."""

    _impl_class = _Implementation

    def __init__(self, function):
        super().__init__(function)
        plain = self._cache_file
        self._cache_file = _Store(self._cache_path, self._impl.filename_base, plain._source_stamp)

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # unpickling damaged bytes can raise anything
            _warn(f"Damaged files in the cache folder {self._cache_path} ({error!r}) are compiled anew.")
            self._discard_index()
            return None

    def save_overload(self, sig, data):
        try:
            super().save_overload(sig, data)
        except Exception as error:
            _warn(f"The cache folder {self._cache_path} could not be written ({error!r}).")
            self._discard_index()
            self.disable()

    def _discard_index(self):
        try:
            os.unlink(self._cache_file._index_path)
        except OSError:
            pass


POINTERS = numba.types.void(*[numba.types.CPointer(numba.types.float64)] * 4)


def address(dispatcher) -> int:
    """Address of a kernel f(a, b, c, out) that indexes four arrays of floats, compiled to take their first entries.

    So a driver that is compiled once can run the kernels of any landscape; see `call`.
    """
    function = CFunc(dispatcher.py_func, (POINTERS.args, POINTERS.return_type), {}, {"error_model": "numpy"})
    if cache_folder() is not None:
        function._cache = KernelCache(dispatcher.py_func)
    function.compile()
    _KEPT.append(function)
    return function.address


_KEPT: list[CFunc] = []  # code behind an address must not be collected


@intrinsic
def call(typing_context, address, a, b, c, out):
    """Call what lies at an address with the first entries of four contiguous arrays of floats."""
    signature = numba.types.void(address, a, b, c, out)

    def generate(context, builder, signature, arguments):
        pointer = llvmlite.ir.DoubleType().as_pointer()
        function_type = llvmlite.ir.FunctionType(llvmlite.ir.VoidType(), [pointer] * 4)
        function = builder.inttoptr(arguments[0], function_type.as_pointer())
        data = [
            context.make_array(kind)(context, builder, value).data
            for kind, value in zip(signature.args[1:], arguments[1:])
        ]
        builder.call(function, data)
        return context.get_dummy_value()

    return signature, generate


def kernel(function=None, /, *, parallel=False):
    """Compile a function in nopython mode, IEEE-exact (no fastmath), and cache it.

    Division by zero gives an infinity or NaN, as in NumPy.

    Parameters
    ----------
    parallel : bool
        Whether ``numba.prange`` runs on all threads.
    """
    if function is None:
        return functools.partial(kernel, parallel=parallel)
    dispatcher = numba.njit(error_model="numpy", parallel=parallel, nogil=True)(function)
    if cache_folder() is not None:
        dispatcher._cache = KernelCache(function)
    return dispatcher
