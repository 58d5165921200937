// Homes of a case's own, and what agents do in them.
//
// Guarantees: XDG_STATE_HOME and HOME point into a folder that is gone with the case.
#pragma once
#include <glove/host/homes.hpp>
#include <gmock/gmock.h>
#include <support/folder.hpp>
#include <support/forked.hpp>
#include <sys/stat.h>

namespace glove::test {

inline const std::string login = ".claude/.credentials.json";

[[nodiscard]] inline auto token(std::string_view name) -> std::string {
    return "{\"token\":\"" + std::string{name} + "\"}";
}

class Homes : public testing::Test {
protected:
    Homes() {
        ::setenv("XDG_STATE_HOME", (place / "state").c_str(), 1);
        ::setenv("HOME", place.directory("you").c_str(), 1);
    }

    // The home of one profile for a project.
    [[nodiscard]] static auto wish_of(const std::string& project,
                                      const std::string& grants = "grants") -> host::home_wish {
        host::home_wish out;
        out.profile = "claude";
        out.project = "/src/" + project;
        out.credentials = {login};
        out.grants = {.digest = grants, .words = "--words " + grants};
        return out;
    }
    [[nodiscard]] static auto named(const std::string& name, const std::string& grants = "grants")
        -> host::home_wish {
        host::home_wish out;
        out.name = name;
        out.grants = {.digest = grants, .words = "--words " + grants};
        return out;
    }
    [[nodiscard]] static auto opened(const host::home_wish& wish) -> host::open_home {
        auto out = host::open_home::open(wish);
        if (!out) {
            ADD_FAILURE() << out.error().step << ": " << out.error().detail;
            std::abort();
        }
        return *std::move(out);
    }
    [[nodiscard]] static auto path_in(const host::open_home& home, const std::string& name)
        -> std::string {
        return home.directory().path + "/" + name;
    }
    // As agents do it: a new file, renamed into place.
    static void agent_writes(const host::open_home& home, const std::string& name,
                             std::string_view text) {
        const auto at = path_in(home, name);
        std::filesystem::create_directories(std::filesystem::path{at}.parent_path());
        std::ofstream{at + ".new"} << text;
        prepared(::rename((at + ".new").c_str(), at.c_str()) == 0, at);
    }
    [[nodiscard]] static auto finished_with(host::open_home& home) -> std::string {
        const auto told = home.finish();
        if (!told) return "error " + std::string{told.error().step};
        std::string out;
        for (const auto& each : *told) out += each + "\n";
        return out;
    }
    // One whole run of an agent that logs in.
    void log_in(const std::string& project, std::string_view text) const {
        auto home = opened(wish_of(project));
        agent_writes(home, login, text);
        (void)finished_with(home);
    }
    [[nodiscard]] auto stored() const -> std::string {
        return content_of(place / "state/glove/credentials/claude" + ("/" + login));
    }
    [[nodiscard]] auto former() const -> std::string {
        return content_of(place / "state/glove/credentials/claude+superseded" + ("/" + login));
    }

    folder place;
};

} // namespace glove::test
