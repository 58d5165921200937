// What each tool of each server was when it was first used: a change of it is not believed until
// the operator says so.
//
// Guarantees: the pin file is the owner's alone, is replaced whole and durably, and one that cannot
// be read exactly is an error, never an empty one. A digest covers the whole definition, whatever
// the order of members in it. Several processes may share the file: what is written is merged with
// what stands there under a lock that is never waited for without end.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/wire/json.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace glove::policy {

enum class pin_state : std::uint8_t { first_use, same, changed };

// SHA-256, in hex, of a tool's definition (name, title, description, schemas, annotations, icons
// and whatever else it has) or of a server's instructions.
[[nodiscard]] auto definition_digest(const wire::json::value& definition) -> std::string;

// What the digest is taken over: JSON with the members of every object in the order of their names.
[[nodiscard]] auto canonical_definition(const wire::json::value& definition) -> std::string;

struct pin {
    std::string server;   // digest of what is started: argv, directory and names of variables
    std::string upstream; // its name, for people
    std::string subject;  // the tool's name; empty for the server's instructions
    std::string digest;
    // Canonical JSON, so that a change can be shown; one longer than 64 KiB is not kept, only its
    // digest.
    std::string definition;
};

class pin_store {
public:
    // The file in `directory` (made 0700 when it is not there); absent is empty.
    [[nodiscard]] static auto open(const std::string& directory) -> result<pin_store>;
    pin_store(pin_store&&) noexcept = default;

    [[nodiscard]] auto find(std::string_view server, std::string_view subject) const -> const pin*;
    [[nodiscard]] auto compare(std::string_view server, std::string_view subject,
                               std::string_view digest) const -> pin_state;
    // Adds those that are pinned for the first time, up to 2048 of a server; of its definitions, it
    // keeps 2 MiB, and of the others digests alone. One that another process has pinned meanwhile
    // with another digest is not replaced; `compare` tells afterwards.
    [[nodiscard]] auto add(std::vector<pin> fresh) -> result<>;
    // Replaces: the operator has accepted them.
    [[nodiscard]] auto accept(std::vector<pin> changed) -> result<>;
    // Takes away what the words name, of whatever server has that name or had it: "up", "up.tool";
    // "*" is all. The answer is what was there. A word that names nothing is an error, and nothing
    // is taken away.
    [[nodiscard]] auto forget(const std::vector<std::string>& words) -> result<std::vector<pin>>;
    [[nodiscard]] auto all() const -> std::vector<pin>;

private:
    pin_store() = default;
    std::string directory_;
    std::map<std::pair<std::string, std::string>, pin, std::less<>> pins_;
};

} // namespace glove::policy
