#pragma once

#include <functional>
#include <map>
#include <string>

#include "engine/tensors/files/readable_file.h"
#include "traces/base/units.h"

namespace offprof {

/// A file inside a zip file, as its directory describes it.
struct ZipRecord {
  Bytes header_offset = 0;     ///< of its local header in the zip file
  Bytes bytes = 0;             ///< uncompressed
  bool is_compressed = false;  ///< its bytes cannot be read in place
};

/// The directory of a zip file, with 64-bit sizes where the file has them (PKWARE's APPNOTE.TXT, 4.3.12 to
/// 4.3.16 and 4.5.3). The contents of the records stay on the disk.
class ZipDirectory {
 public:
  /// Reads the end of the file and the directory. `file` must outlive this object. Throws Error (input), with
  /// a reason that completes the sentence `the archive ...`, if the directory is missing, damaged or beyond
  /// the file, or if two records have the same name.
  explicit ZipDirectory(const ReadableFile& file);

  /// Returns the records by name.
  const std::map<std::string, ZipRecord, std::less<>>& records() const { return records_; }
  /// Returns the offset of the record's first byte in the file. Throws Error (input) if the record is
  /// compressed, or is not completely inside the file.
  Bytes content_offset(const std::string& name, const ZipRecord& record) const;
  /// Reads a whole record. Throws Error (input) like content_offset.
  std::string read(const std::string& name, const ZipRecord& record) const;

 private:
  void read_directory(Bytes offset, Bytes bytes);

  const ReadableFile& file_;
  std::map<std::string, ZipRecord, std::less<>> records_;
};

}  // namespace offprof
