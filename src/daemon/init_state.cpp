// Nothing is ever written over; what differs is found before anything is made.
#include "daemon/init_state.hpp"
#include <cerrno>
#include <fcntl.h>
#include <glove/base/wipe.hpp>
#include <glove/control/receipt.hpp>
#include <glove/control/service_config.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/user_directories.hpp>
#include <glove/wire/crypto.hpp>
#include <span>
#include <unistd.h>

namespace glove::daemon {

namespace {

struct places {
    std::string state;
    std::string config; // the file
};

[[nodiscard]] auto find_places(const std::optional<std::string>& config_file) -> result<places> {
    GLOVE_TRY(auto state, sys::state_directory());
    if (config_file) {
        GLOVE_TRY(auto file, sys::absolute(*config_file));
        return places{std::move(state), std::move(file)};
    }
    GLOVE_TRY(const auto directory, sys::configuration_directory());
    return places{std::move(state), directory + "/config.json"};
}

[[nodiscard]] auto least_config(const std::string& state) -> control::service_config {
    control::service_config out;
    out.runtime_directory = state + "/runtime";
    out.audit_key = state + "/audit.key";
    out.receipt_journal = state + "/receipts.journal";
    return out;
}

// Whether there is one; an error when it is another than the one that would be made.
[[nodiscard]] auto has_config(const std::string& path, const control::service_config& wanted)
    -> result<bool> {
    GLOVE_TRY(const auto there, sys::is_there(path));
    if (!there) return false;
    auto found = control::load_service_config(path);
    if (found && *found == wanted) return true;
    const auto remedy = "gloved --config " + path + " uses it; to begin anew, move it away first";
    if (!found)
        return fail(found.error().code, "init.config",
                    path + " is there and cannot be used: " + found.error().detail,
                    "mend it, or move it away");
    return fail(errc::conflict, "init.config",
                path + " is there and is not the one that would be made; it is left as it is",
                remedy);
}

[[nodiscard]] auto ready_directory(const std::string& path, std::vector<made_thing>& out)
    -> result<sys::unique_fd> {
    GLOVE_TRY(const auto there, sys::is_there(path));
    GLOVE_TRY(auto directory, sys::make_private_directory(path));
    GLOVE_TRY(const auto facts, sys::inspect(directory));
    if (facts.permissions != 0700)
        return fail(errc::not_permitted, "init.directory", path + " has not mode 0700",
                    "chmod 700 " + path);
    out.push_back({!there, path});
    return directory;
}

// Through to the disk: what depends on it is written later.
[[nodiscard]] auto put_file(sys::fd_ref directory, const std::string& name,
                            std::string_view content) -> result<> {
    GLOVE_CHECK(sys::create_private_file(directory, name, content));
    GLOVE_TRY(const auto file, sys::open_beneath(directory, name, O_RDONLY | O_NOFOLLOW));
    GLOVE_CHECK(sys::sync(file));
    return sys::sync(directory);
}

[[nodiscard]] auto ready_key(sys::fd_ref directory, const std::string& path, sys::entropy& random,
                             std::vector<made_thing>& out) -> result<> {
    GLOVE_TRY(const auto there, sys::is_there(path));
    if (there) {
        if (const auto key = control::audit_key::load(path); !key)
            return fail(key.error().code, "init.key",
                        path + " is there and is no key: " + key.error().detail,
                        "move it away; receipts that were made with it need it still");
    } else {
        wire::digest256 bytes{};
        GLOVE_CHECK(random.fill(std::as_writable_bytes(std::span{bytes})));
        auto digits = wire::to_hex(bytes);
        ::explicit_bzero(bytes.data(), bytes.size());
        const wiped_at_end first{digits};
        std::string line;
        line.reserve(digits.size() + 1);
        line.append(digits).append("\n");
        const wiped_at_end second{line};
        GLOVE_CHECK(put_file(directory, path.substr(path.rfind('/') + 1), line));
    }
    out.push_back({!there, path});
    return {};
}

} // namespace

auto init_state(const std::optional<std::string>& config_file, sys::entropy& random)
    -> result<std::vector<made_thing>> {
    GLOVE_TRY(const auto where, find_places(config_file));
    const auto config = least_config(where.state);
    GLOVE_TRY(const auto text, control::service_config_text(config));
    GLOVE_TRY(const auto has, has_config(where.config, config));
    std::vector<made_thing> out;
    GLOVE_TRY(const auto state, ready_directory(where.state, out));
    GLOVE_TRY(const auto runtime, ready_directory(config.runtime_directory, out));
    GLOVE_CHECK(ready_key(state, config.audit_key, random, out));
    const auto beside = sys::parent_of(where.config);
    GLOVE_TRY(const auto directory, sys::make_private_directory(beside));
    if (!has)
        GLOVE_CHECK(put_file(directory, where.config.substr(where.config.rfind('/') + 1), text));
    out.push_back({!has, where.config});
    return out;
}

} // namespace glove::daemon
