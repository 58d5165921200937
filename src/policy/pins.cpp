// One JSON text, read and written whole with the same field table.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/policy/pins.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/files.hpp>
#include <glove/wire/crypto.hpp>
#include <glove/wire/fields.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace glove::policy {

namespace {

using wire::json::value;

constexpr const char* file_name = "mcp-pins.json";
constexpr const char* lock_name = "mcp-pins.lock";
constexpr std::size_t most_bytes = 16UL << 20;
constexpr std::size_t most_pins = 1UL << 16;
constexpr std::size_t longest_definition = 64UL << 10;
// Of one server, so that none takes the room of others. Beyond it digests alone are kept, and
// beyond the number nothing.
constexpr std::size_t most_pins_of_server = 2048;
constexpr std::size_t most_definitions_of_server = 2UL << 20;
constexpr std::uint64_t format = 1;

struct pin_file {
    std::uint64_t version = format;
    std::vector<pin> pins;
};

constexpr wire::text label_of_server{wire::grammar::token, 1, 256};
constexpr auto pin_fields =
    wire::table(wire::row<&pin::server, label_of_server>("server"),
                wire::row<&pin::upstream, wire::text{wire::grammar::token, 1, 256}>("upstream"),
                wire::row<&pin::subject, wire::text{wire::grammar::utf8, 0, 1024}>("subject"),
                wire::row<&pin::digest, wire::hex64>("digest"),
                wire::row<&pin::definition, wire::text{wire::grammar::utf8, 0, longest_definition}>(
                    "definition"));
constexpr auto file_fields = wire::table(
    wire::row<&pin_file::version, wire::integer{format, format}>("version"),
    wire::row<&pin_file::pins, wire::list<wire::record<pin_fields>{}>{0, most_pins}>("pins"));

using pin_map = std::map<std::pair<std::string, std::string>, pin, std::less<>>;

[[nodiscard]] auto name_in(const std::string& directory) -> std::string {
    return directory + "/" + file_name;
}

[[nodiscard]] auto unreadable(const std::string& directory, const std::string& why) {
    return fail(errc::corrupt, "pins.read", name_in(directory) + " " + why,
                "put it right, or remove it: then every tool is pinned anew when it is first seen");
}

[[nodiscard]] auto fault_of(const sys::file_facts& facts) -> const char* {
    if (facts.identity.type != S_IFREG) return "is not a regular file";
    if (facts.owner != ::geteuid()) return "belongs to another user";
    if ((facts.permissions & 077U) != 0) return "can be read or written by others";
    if (facts.links != 1) return "has more than one name";
    if (facts.size > most_bytes) return "is larger than 16 MiB";
    return nullptr;
}

[[nodiscard]] auto decode_pins(std::string_view text, const std::string& directory)
    -> result<pin_map> {
    const auto tree = wire::json::read(text, {.bytes = most_bytes,
                                              .elements = most_pins,
                                              .values = most_pins * (pin_fields.size() + 1) + 8});
    auto file = tree ? wire::decode(*tree, file_fields) : std::unexpected(tree.error());
    if (!file) return unreadable(directory, "is not a pin file: " + file.error().detail);
    pin_map out;
    for (auto& each : file->pins) {
        std::pair key{each.server, each.subject};
        if (!out.emplace(std::move(key), std::move(each)).second)
            return unreadable(directory, "has two pins for one tool");
    }
    return out;
}

// No file is no pins; anything else that cannot be read is an error.
[[nodiscard]] auto read_pins(sys::fd_ref at, const std::string& directory) -> result<pin_map> {
    const auto file = sys::open_beneath(at, file_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (!file && file.error().os == ENOENT) return pin_map{};
    if (!file && file.error().os == ELOOP) return unreadable(directory, "is a link");
    if (!file) return fail_os("pins.read", file.error().os, name_in(directory));
    GLOVE_TRY(const auto facts, sys::inspect(*file));
    if (const auto* const fault = fault_of(facts))
        return fail(errc::not_permitted, "pins.read", name_in(directory) + " " + fault,
                    "make it a file of your own with mode 600, or remove it");
    GLOVE_TRY(const auto text, sys::read_all(*file, most_bytes));
    return decode_pins(text, directory);
}

[[nodiscard]] auto text_of(const pin_map& pins, bool with_definitions) -> result<std::string> {
    pin_file file;
    for (const auto& [key, each] : pins) {
        file.pins.push_back(each);
        if (!with_definitions) file.pins.back().definition.clear();
    }
    return wire::encode(file, file_fields);
}

[[nodiscard]] auto write_pins(sys::fd_ref at, const std::string& directory, const pin_map& pins)
    -> result<> {
    GLOVE_TRY(auto text, text_of(pins, true));
    // The texts are for people; what is compared are the digests.
    if (text.size() > most_bytes) {
        GLOVE_TRY(text, text_of(pins, false));
    }
    if (text.size() > most_bytes)
        return fail(errc::limit_exceeded, "pins.write",
                    name_in(directory) + " would be larger than 16 MiB",
                    "remove it, and look at the tools with `glove mcp tools` once more");
    auto put = sys::replace_durably(at, file_name, text, sys::system_clock{}.wall().count());
    if (!put) return fail_os("pins.write", put.error().os, name_in(directory));
    return {};
}

// Held by the open file, so it ends with the object.
[[nodiscard]] auto lock(sys::fd_ref at, const std::string& directory) -> result<sys::unique_fd> {
    constexpr std::chrono::nanoseconds longest = std::chrono::seconds{2};
    constexpr ::timespec pause{.tv_sec = 0, .tv_nsec = 10'000'000};
    GLOVE_TRY(auto file, sys::open_private_append(at, lock_name));
    const auto deadline = sys::system_clock{}.monotonic() + longest;
    while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return fail_os("pins.lock", errno, directory + "/" + lock_name);
        if (sys::system_clock{}.monotonic() >= deadline)
            return fail(errc::timed_out, "pins.lock",
                        directory + "/" + lock_name + " is held by another process",
                        "try again; look for a glove that hangs if it goes on");
        (void)::nanosleep(&pause, nullptr);
    }
    return file;
}

struct share {
    std::size_t pins = 0, bytes = 0;
};
[[nodiscard]] auto shares_of(const pin_map& pins) -> std::map<std::string, share> {
    std::map<std::string, share> out;
    for (const auto& [key, each] : pins) {
        auto& of = out[each.server];
        of.pins += each.subject.empty() ? 0 : 1;
        of.bytes += each.definition.size();
    }
    return out;
}

enum class existing : bool { kept, replaced };
// Under the lock, from what stands there now.
[[nodiscard]] auto merge(const std::string& directory, std::vector<pin> pins, existing what)
    -> result<pin_map> {
    GLOVE_TRY(const auto at, sys::make_private_directory(directory));
    GLOVE_TRY(const auto held, lock(at, directory));
    GLOVE_TRY(auto standing, read_pins(at, directory));
    auto shares = shares_of(standing);
    bool changed = false;
    for (auto& each : pins) {
        std::pair key{each.server, each.subject};
        const auto found = standing.find(key);
        if (found != standing.end() && what == existing::kept) continue;
        auto& of = shares[each.server];
        if (found != standing.end()) of.bytes -= found->second.definition.size();
        // The instructions have a place of their own.
        else if (!each.subject.empty() && ++of.pins > most_pins_of_server) continue;
        if (each.definition.size() > longest_definition ||
            of.bytes + each.definition.size() > most_definitions_of_server)
            each.definition.clear();
        of.bytes += each.definition.size();
        changed = true;
        standing.insert_or_assign(std::move(key), std::move(each));
    }
    if (changed) GLOVE_CHECK(write_pins(at, directory, standing));
    return standing;
}

// Members in the order of their names, at every depth.
[[nodiscard]] auto in_order(const value& of) -> value {
    if (const auto* const items = of.as_array()) {
        wire::json::array out;
        for (const auto& item : *items) out.push_back(in_order(item));
        return value{std::move(out)};
    }
    const auto* const members = of.as_object();
    if (members == nullptr) return of;
    wire::json::object out;
    for (const auto& each : *members) out.push_back({each.name, in_order(each.data)});
    std::ranges::sort(out, {}, &wire::json::member::name);
    return value{std::move(out)};
}

} // namespace

auto canonical_definition(const value& definition) -> std::string {
    return wire::json::to_text(in_order(definition));
}

auto definition_digest(const value& definition) -> std::string {
    const auto digest = wire::sha256(canonical_definition(definition));
    return digest ? wire::to_hex(*digest) : std::string{}; // which no pin has, nor can have
}

auto pin_store::open(const std::string& directory) -> result<pin_store> {
    GLOVE_TRY(const auto at, sys::make_private_directory(directory));
    pin_store out;
    GLOVE_TRY(out.pins_, read_pins(at, directory));
    out.directory_ = directory;
    return out;
}

auto pin_store::find(std::string_view server, std::string_view subject) const -> const pin* {
    const auto found = pins_.find(std::pair<std::string, std::string>{server, subject});
    return found == pins_.end() ? nullptr : &found->second;
}

auto pin_store::compare(std::string_view server, std::string_view subject,
                        std::string_view digest) const -> pin_state {
    const auto* const known = find(server, subject);
    if (known == nullptr) return pin_state::first_use;
    return known->digest == digest ? pin_state::same : pin_state::changed;
}

auto pin_store::add(std::vector<pin> fresh) -> result<> {
    GLOVE_TRY(pins_, merge(directory_, std::move(fresh), existing::kept));
    return {};
}

auto pin_store::accept(std::vector<pin> changed) -> result<> {
    GLOVE_TRY(pins_, merge(directory_, std::move(changed), existing::replaced));
    return {};
}

auto pin_store::forget(const std::vector<std::string>& words) -> result<std::vector<pin>> {
    const auto names = [](const std::string& word, const pin& of) {
        return word == "*" || word == of.upstream ||
               (!of.subject.empty() && word == of.upstream + "." + of.subject);
    };
    GLOVE_TRY(const auto at, sys::make_private_directory(directory_));
    GLOVE_TRY(const auto held, lock(at, directory_));
    GLOVE_TRY(auto standing, read_pins(at, directory_));
    for (const auto& word : words)
        if (std::ranges::none_of(standing, [&](const auto& e) { return names(word, e.second); }))
            return fail(errc::not_found, "pins.forget", "nothing is pinned of " + in_quotes(word),
                        "a pin belongs to a server, as in files, or to a tool of it, as in "
                        "files.read_text_file");
    std::vector<pin> out;
    std::erase_if(standing, [&](const auto& each) {
        const bool gone = std::ranges::any_of(
            words, [&](const std::string& word) { return names(word, each.second); });
        if (gone) out.push_back(each.second);
        return gone;
    });
    if (!out.empty()) GLOVE_CHECK(write_pins(at, directory_, standing));
    pins_ = std::move(standing);
    return out;
}

auto pin_store::all() const -> std::vector<pin> {
    std::vector<pin> out;
    for (const auto& [key, each] : pins_) out.push_back(each);
    return out;
}

} // namespace glove::policy
