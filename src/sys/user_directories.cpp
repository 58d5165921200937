#include <cstdlib>
#include <glove/sys/user_directories.hpp>

namespace glove::sys {

namespace {

// $NAME/glove, or ~/FALLBACK/glove.
[[nodiscard]] auto directory(const char* name, std::string_view fallback) -> result<std::string> {
    if (const char* const set = std::getenv(name); set != nullptr && *set != '\0') {
        if (*set != '/')
            return fail(errc::invalid_input, "exec.directories",
                        std::string{name} + "=" + set + " is not an absolute path",
                        std::string{"unset "} + name + ", or give it an absolute path");
        return std::string{set} + "/glove";
    }
    const char* const home = std::getenv("HOME");
    if (home == nullptr || *home != '/')
        return fail(errc::invalid_input, "exec.directories", "HOME is not set to an absolute path",
                    std::string{"set HOME, or "} + name);
    return std::string{home} + "/" + std::string{fallback} + "/glove";
}

} // namespace

auto state_directory() -> result<std::string> {
    return directory("XDG_STATE_HOME", ".local/state");
}
auto configuration_directory() -> result<std::string> {
    return directory("XDG_CONFIG_HOME", ".config");
}

} // namespace glove::sys
