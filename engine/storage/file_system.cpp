#include "engine/storage/file_system.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <array>
#include <cstdint>

#include "engine/copies/aligned_buffer.h"

namespace offprof {
namespace {

struct KnownFileSystem {
  std::uint32_t magic = 0;
  const char* name = "";
  bool is_memory = false;
};

// <linux/magic.h> of Debian 12 lacks these; the values come from the sources of the file systems.
constexpr std::uint32_t kZfsMagic = 0x2FC12FC1, kBcachefsMagic = 0xCA451A4E, kLustreMagic = 0x0BD00BD0;
constexpr std::array kKnown = {
    KnownFileSystem{EXT4_SUPER_MAGIC, "ext4"},
    KnownFileSystem{XFS_SUPER_MAGIC, "xfs"},
    KnownFileSystem{BTRFS_SUPER_MAGIC, "btrfs"},
    KnownFileSystem{F2FS_SUPER_MAGIC, "f2fs"},
    KnownFileSystem{kZfsMagic, "zfs"},
    KnownFileSystem{kBcachefsMagic, "bcachefs"},
    KnownFileSystem{OVERLAYFS_SUPER_MAGIC, "overlayfs"},
    KnownFileSystem{NFS_SUPER_MAGIC, "nfs"},
    KnownFileSystem{kLustreMagic, "lustre"},
    KnownFileSystem{CEPH_SUPER_MAGIC, "ceph"},
    KnownFileSystem{FUSE_SUPER_MAGIC, "fuse"},
    KnownFileSystem{V9FS_MAGIC, "9p"},
    KnownFileSystem{TMPFS_MAGIC, "tmpfs", true},
    KnownFileSystem{RAMFS_MAGIC, "ramfs", true},
};

}  // namespace

FileSystem file_system_of(int fd) {
  struct statfs status {};
  if (fstatfs(fd, &status) != 0) return {"unknown", false, 0};
  const auto magic = static_cast<std::uint32_t>(status.f_type);
  FileSystem result{fmt::format("unknown ({:#x})", magic), false,
                    static_cast<Bytes>(status.f_bavail) * static_cast<Bytes>(status.f_bsize)};
  for (const KnownFileSystem& known : kKnown) {
    if (known.magic != magic) continue;
    result.name = known.name;
    result.is_memory = known.is_memory;
  }
  return result;
}

DirectAlignment direct_alignment_of(int fd) {
  struct statx status {};
  const bool said =
      statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 && (status.stx_mask & STATX_DIOALIGN) != 0;
  if (!said) return {Bytes{kDiskAlignment}, Bytes{kDiskAlignment}};
  return {status.stx_dio_mem_align, status.stx_dio_offset_align};
}

}  // namespace offprof
