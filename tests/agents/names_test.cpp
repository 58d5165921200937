// Names as a weapon: two that change places while Glove looks, and one that would write lines of
// its own into what Glove says.
#include "agents/racer.hpp"
#include "agents/scene.hpp"

namespace glove::test {
namespace {

// -- a decoy for a hidden file --------------------------------------------------------------------

class Decoy : public Scene {
protected:
    [[nodiscard]] static auto inode_of(const std::string& path) -> std::string {
        struct ::stat found{};
        EXPECT_EQ(::stat(path.c_str(), &found), 0);
        return std::to_string(found.st_ino);
    }
    const std::string key = workspace + "/key", decoy = workspace + "/k2";
};

// --hide names a file at one moment: the one that the report tells by its inode. Which of the two
// that was is the host's business; that it, and no other, is the one that cannot be read is
// Glove's. Whenever it cannot be so, the run is refused.
TEST_F(Decoy, never_stands_in_for_the_file_that_is_hidden) {
    put(key, "secret");
    put(decoy, "harmless");
    const std::map<std::string, std::string> text_of{{inode_of(key), "secret"},
                                                     {inode_of(decoy), "harmless"}};
    const auto report = home + "/report.json";
    int refused = 0, shown = 0;
    {
        const racer swap{key, decoy};
        for (int i = 0; i < 100; ++i) {
            const auto seen = run(glove_exec(
                home, {"--workspace", workspace, "--hide", key, "--report", report},
                {"sh", "-c", "for i in 1 2 3 4; do cat key k2; done 2>/dev/null; exit 0"}));
            if (seen.status() != 0) {
                ++refused;
                EXPECT_EQ(seen.status(), 125) << seen;
                EXPECT_NE(seen.errors.find(" mount.tree: "), std::string::npos) << seen;
                EXPECT_EQ(seen.output, "") << seen;
                continue;
            }
            const auto said = contents(report);
            std::string hidden;
            for (const auto& [inode, text] : text_of)
                if (said.find("\"kind\":\"mask\",\"origin\":\"hidden\"") != std::string::npos &&
                    said.find("\"inode\":" + inode + "}") != std::string::npos)
                    hidden += text;
            ASSERT_TRUE(hidden == "secret" || hidden == "harmless") << hidden << said;
            EXPECT_EQ(seen.output.find(hidden), std::string::npos) << said;
            shown += seen.output.empty() ? 0 : 1; // the other one
        }
    }
    std::cout << "refused " << refused << ", the other file read " << shown << " of 100\n";
    EXPECT_GT(refused + shown, 0);
}

TEST_F(Decoy, without_a_race_hides_the_one_that_has_the_name) {
    put(key, "secret");
    put(decoy, "harmless");
    for (const std::string seen : {"harmless", "secret"}) {
        EXPECT_EQ(run(glove_exec(home, {"--workspace", workspace, "--hide", key},
                                 {"sh", "-c", "cat key; cat k2"}))
                      .output,
                  seen);
        ASSERT_EQ(::renameat2(AT_FDCWD, key.c_str(), AT_FDCWD, decoy.c_str(), RENAME_EXCHANGE), 0);
    }
}

// -- names that would speak -----------------------------------------------------------------------

class SpokenNames : public Scene {
protected:
    [[nodiscard]] static auto quiet(const finished& seen) -> bool {
        const auto said = seen.output + seen.errors;
        return said.find('\x1b') == std::string::npos &&
               said.find("\nforged") == std::string::npos &&
               said.find("\n  forged") == std::string::npos;
    }
    const std::string name = elsewhere + "/a\n  forged\nforged\x1b[2Jx";
};

TEST_F(SpokenNames, forge_no_line_of_an_explanation) {
    ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
    ASSERT_EQ(::mkfifo((elsewhere + "/plain").c_str(), 0600), 0);
    put(workspace + "/h\n  forged\x1b[2J", "");
    const auto seen =
        run(glove_exec(home,
                       {"--workspace", workspace, "--hide", workspace + "/h\n  forged\x1b[2J",
                        "--read", elsewhere, "--explain"},
                       {"true"}));
    EXPECT_EQ(seen.status(), 0) << seen;
    EXPECT_TRUE(quiet(seen)) << seen;
    EXPECT_NE(seen.output.find("forged"), std::string::npos) << seen; // it is told, in one line
    EXPECT_NE(seen.output.find("\n  " + elsewhere + "/plain\n"), std::string::npos) << seen;
}

TEST_F(SpokenNames, forge_no_line_of_an_error) {
    ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
    for (const auto& given : {name, name + "-missing"})
        for (const std::string flag : {"--read", "--write", "--workspace", "--hide"}) {
            const auto seen = run(glove_exec(home, {flag, given + "/"}, {"true"}));
            EXPECT_NE(seen.status(), 0) << seen;
            EXPECT_TRUE(quiet(seen)) << flag << seen;
            EXPECT_NE(seen.errors.find("forged"), std::string::npos) << flag << seen;
        }
    const auto report = run(glove_exec(home, {"--report", name}, {"true"}));
    EXPECT_EQ(report.status(), 125) << report;
    EXPECT_TRUE(quiet(report)) << report;
    EXPECT_NE(report.errors.find("forged"), std::string::npos) << report;
    const auto command = run(glove_exec(home, {}, {name}));
    EXPECT_EQ(command.status(), 127) << command;
    EXPECT_TRUE(quiet(command)) << command;
}

TEST_F(SpokenNames, forge_no_line_of_a_note) {
    put(name, "");
    std::filesystem::create_hard_link(name, elsewhere + "/second");
    const auto seen = run(glove_exec(home, {"--read", elsewhere, "--hide", name}, {"true"}));
    EXPECT_EQ(seen.status(), 0) << seen;
    EXPECT_TRUE(quiet(seen)) << seen;
    EXPECT_NE(seen.errors.find("the file has 2 names"), std::string::npos) << seen;
}

// -- what a caller's umask takes away -------------------------------------------------------------

class Umask : public Scene {};

TEST_F(Umask, of_the_caller_takes_nothing_from_glove_and_gives_nobody_a_look) {
    for (const ::mode_t mask : {0777U, 0077U, 0U}) {
        const auto state = home + "/.state-" + std::to_string(mask);
        auto asked = glove_exec(home,
                                {"--workspace", workspace, "--report",
                                 home + "/report-" + std::to_string(mask) + ".json"},
                                {"sh", "-c", "echo ran; umask"});
        asked.environment["XDG_STATE_HOME"] = state;
        ASSERT_EQ(::mkdir(state.c_str(), 0700), 0);
        asked.before_exec = [mask] { (void)::umask(mask); };
        const auto seen = run(asked);
        EXPECT_EQ(seen.status(), 0) << mask << seen;
        EXPECT_EQ(seen.output.substr(0, 4), "ran\n") << mask;
        int records = 0;
        std::error_code ignored;
        for (const auto& record :
             std::filesystem::directory_iterator{state + "/glove/audit", ignored}) {
            struct ::stat found{};
            ASSERT_EQ(::stat(record.path().c_str(), &found), 0);
            EXPECT_EQ(found.st_mode & 07777U, 0600U) << mask;
            EXPECT_GT(found.st_size, 0);
            ++records;
        }
        EXPECT_EQ(records, 1) << mask;
        struct ::stat report{};
        ASSERT_EQ(::stat((home + "/report-" + std::to_string(mask) + ".json").c_str(), &report), 0);
        EXPECT_EQ(report.st_mode & 0077U, 0U) << mask;
    }
}

} // namespace
} // namespace glove::test
