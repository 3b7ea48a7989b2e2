#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/io/json_access.h"

namespace offprof {

/// A key of a profile file, by its path (`memory.bytes`), and the function that stores its value.
template <typename Profile>
struct ProfileField {
  std::string path;
  std::function<void(const JsonValue&, Profile&)> read;
  bool is_optional = false;
};

/// A kind of profile file.
struct ProfileKind {
  std::string_view schema;
  std::string_view what;       ///< for errors: `a GPU profile`
  std::string_view reference;  ///< page of docs/reference that describes its keys
};

/// Text of a profile file, with the lines of its keys.
class ProfileDocument {
 public:
  /// Throws Error (input) if the text is not JSON, is of another schema or has keys that are not in `known`,
  /// the paths of all keys. `where` names the text in errors. `kind` must outlive the document.
  ProfileDocument(const std::string& text, std::string where, const ProfileKind& kind,
                  const std::vector<std::string>& known);

  bool has(const std::string& path) const { return lines_.contains(path); }
  /// Returns the value of a key. Throws Error (input) if it is missing.
  JsonValue at(const std::string& path) const;

 private:
  std::string place(const std::string& path) const;

  std::string where_;
  const ProfileKind& kind_;
  nlohmann::json document_;
  std::map<std::string, int> lines_;
};

/// Reads a profile by the table of all its keys. Throws Error (input) with the key and line that are wrong.
template <typename Profile>
Profile read_profile(const std::vector<ProfileField<Profile>>& fields, const ProfileKind& kind,
                     const std::string& text, const std::string& where) {
  std::vector<std::string> known;
  for (const auto& field : fields) known.push_back(field.path);
  const ProfileDocument document(text, where, kind, known);
  Profile profile;
  for (const auto& field : fields)
    if (!field.is_optional || document.has(field.path)) field.read(document.at(field.path), profile);
  return profile;
}

/// Returns the field of a text that is not empty.
template <typename Profile>
ProfileField<Profile> text_field(std::string path, std::string Profile::*member) {
  return {std::move(path), [=](const JsonValue& value, Profile& profile) {
            profile.*member = value.as_string();
            if ((profile.*member).empty()) value.fail("it is empty");
          }};
}

/// Returns the field of the source of a group's figures. It is for people who read the file and is not
/// stored.
template <typename Profile>
ProfileField<Profile> source_field(const std::string& group) {
  return {"sources." + group, [](const JsonValue& value, Profile&) {
            if (value.as_string().empty()) value.fail("it is empty; name the source of the figures");
          }};
}

/// Reads a number above 0. Throws Error (input).
double read_positive(const JsonValue& value);
/// Reads such a number from `least` to `most`. Throws Error (input).
double read_between(const JsonValue& value, double least, double most);
/// Reads a rate in bytes or operations per second. Throws Error (input).
double read_rate(const JsonValue& value);

}  // namespace offprof
