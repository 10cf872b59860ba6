# Sourced by the other scripts, and by users who build their own LibTorch projects with the wheel:
#   . scripts/env.sh
# Exports where the pinned dependencies lie, so that a plain `cmake -S . -B build` finds them.
# Nothing is installed here (scripts/setup does that).

_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$_root/scripts/versions.env"
export LLVM_VERSION # CMakePresets.json names the compiler by it

# One folder for all checkouts: the Python environment with LibTorch, ccache, the examples' data.
export ACCELERATE_MIGRATE_CACHE=${ACCELERATE_MIGRATE_CACHE:-${XDG_CACHE_HOME:-${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}/.cache}/accelerate-migrate}
export ACCELERATE_MIGRATE_VENV=$ACCELERATE_MIGRATE_CACHE/venv-torch-$TORCH_VERSION
export ACCELERATE_MIGRATE_DATA=$ACCELERATE_MIGRATE_CACHE/data-1

_site=$ACCELERATE_MIGRATE_VENV/lib/python3/site-packages
for _candidate in "$ACCELERATE_MIGRATE_VENV"/lib/python3.*/site-packages; do
  [ -d "$_candidate" ] && _site=$_candidate
done

# nvcc of the machine if there is one, else the one from the registry (see scripts/setup).
_nvcc=$(command -v nvcc || true)
[ -n "$_nvcc" ] || { [ -x /usr/local/cuda/bin/nvcc ] && _nvcc=/usr/local/cuda/bin/nvcc; } || true
[ "${ACCELERATE_MIGRATE_CUDA:-}" = wheel ] && _nvcc=
[ -n "$_nvcc" ] || _nvcc=$_site/nvidia/cu13/bin/nvcc
CUDA_HOME=$(dirname "$(dirname "$(readlink -f "$_nvcc" 2>/dev/null || echo "$_nvcc")")")
export CUDA_HOME CUDA_PATH=$CUDA_HOME CUDA_TOOLKIT_ROOT=$CUDA_HOME CUDAToolkit_ROOT=$CUDA_HOME CUDACXX=$CUDA_HOME/bin/nvcc
case :$PATH: in *":$CUDA_HOME/bin:"*) ;; *) export PATH=$CUDA_HOME/bin:$PATH ;; esac
# No CUDA source is compiled here: one architecture keeps Torch's CMake quiet and quick.
export TORCH_CUDA_ARCH_LIST=${TORCH_CUDA_ARCH_LIST:-9.0}

_torch=$_site/torch/share/cmake
case :${CMAKE_PREFIX_PATH:-}: in
  *":$_torch:"*) ;;
  *) export CMAKE_PREFIX_PATH=$_torch${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH} ;;
esac

# Precompiled headers and several checkouts share one compiler cache.
export CCACHE_DIR=${CCACHE_DIR:-$ACCELERATE_MIGRATE_CACHE/ccache}
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$_root} CCACHE_NOHASHDIR=1
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros,include_file_mtime,include_file_ctime}
unset _candidate _nvcc _torch
