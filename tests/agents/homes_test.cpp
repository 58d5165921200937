// Real agents in real sandboxes that share a login and nothing else, and what they try on it.
#include "host/homes_scene.hpp"
#include <glove/container/plan.hpp>
#include <glove/run/exec.hpp>

namespace {

using namespace glove;
using test::content_of;
using test::login;
using test::prepared;
using test::token;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class Agents : public test::Homes {
protected:
    struct outcome {
        int status = -1;
        std::string output;
        std::string told; // of the taking back
    };

    // One run of a profile in a project, as the command line has it: open, run, finish.
    [[nodiscard]] auto agent(const std::string& project, const std::string& script) const
        -> outcome {
        auto wish = wish_of(project);
        wish.project = place.directory("src/" + project);
        auto home = opened(wish);
        const auto seen = test::forked([&] {
            const auto file = place / "output";
            const sys::unique_fd out{::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600)};
            const sys::unique_fd in{::open("/dev/null", O_RDONLY)};
            prepared(::dup2(in.get(), 0) == 0 && ::dup2(out.get(), 1) == 1 &&
                         ::dup2(out.get(), 2) == 2,
                     "dup2");
            run::exec_request request;
            request.profile.argv = {"bash", "-c", script};
            request.profile.workspace = wish.project;
            request.profile.home = home.directory();
            const auto status = run::exec(std::move(request));
            return status ? std::to_string(*status)
                          : std::string{status.error().step} + ": " + status.error().detail;
        });
        outcome out{.status = -1, .output = content_of(place / "output"), .told = {}};
        EXPECT_THAT(seen.said, testing::MatchesRegex("[0-9]+"));
        out.status = std::atoi(seen.said.c_str());
        out.told = finished_with(home);
        return out;
    }
};

TEST_F(Agents, ALoginOfOneProjectIsInAnotherAndWhatWasPlantedIsNot) {
    const auto one = agent("one", "mkdir ~/.claude; echo '{\"token\":1}' > ~/.claude/.new; "
                                  "mv ~/.claude/.new ~/.claude/.credentials.json; "
                                  "echo 'touch planted' > ~/.bashrc; echo $HOME");
    EXPECT_EQ(one.output, "/home/agent\n");
    EXPECT_THAT(one.told, HasSubstr("is new"));
    const auto two =
        agent("two", "cat ~/" + login + "; ls -A ~; echo '{\"token\":2}' > ~/" + login);
    EXPECT_EQ(two.output, "{\"token\":1}\n.claude\n");
    EXPECT_THAT(two.told, IsEmpty());
    // The first one has what it planted, and the second one's token.
    EXPECT_EQ(agent("one", "cat ~/" + login + "; ls -A ~").output,
              "{\"token\":2}\n.bashrc\n.claude\n");
}

TEST_F(Agents, NeitherAnotherHomeNorTheStoreNorTheRecordIsThere) {
    log_in("start", token("secret"));
    const auto state = place / "state/glove";
    EXPECT_EQ(stored(), token("secret")); // where the command below looks
    const auto look = "find '" + state + "' -name '*.json' 2>/dev/null; ls ~/.. ~/../..";
    EXPECT_THAT(agent("one", look + " | grep -cE 'state|glove|credentials'").output, "0\n");
    EXPECT_EQ(agent("one", "ls -A ~/..").output, "agent\n");
    EXPECT_EQ(test::names_in(state), 4U); // audit, credentials, homes, runs
}

TEST_F(Agents, ASetUserIdBitOrADeviceCannotBeLeftInAHome) {
    const auto got = agent("one", "cp /bin/true ~/t; chmod 4755 ~/t; echo $?; "
                                  "mknod ~/null c 1 3; echo $?; chmod 755 ~/t && ~/t; echo $?");
    EXPECT_THAT(got.output, testing::MatchesRegex("(.|\n)*\n?1\n(.|\n)*\n1\n0\n"));
}

struct trick {
    const char* script;
    const char* told;
};
const trick tricks[] = {
    {"ln -sf /etc/passwd ~/.claude/.credentials.json", "is a link"},
    {"ln -sf ../../../../credentials ~/.claude/.credentials.json", "is a link"},
    {"ln ~/.claude/.credentials.json ~/other", "more than one name"},
    {"rm ~/.claude/.credentials.json; mkfifo ~/.claude/.credentials.json", "not a regular file"},
    {"rm -r ~/.claude; ln -s /etc ~/.claude", "is a link"},
    {"truncate -s 1T ~/.claude/.credentials.json", "larger than 1 MiB"},
    {"rm ~/.claude/.credentials.json; mkdir ~/.claude/.credentials.json", "is a directory"},
};

TEST_F(Agents, WhatTheyMakeOfTheLoginIsNamedAndTheStoreStays) {
    log_in("start", token("first"));
    int number = 0;
    for (const auto& each : tricks) {
        const auto project = "p" + std::to_string(++number);
        const auto got = agent(project, each.script);
        EXPECT_EQ(got.status, 0) << each.script << ": " << got.output;
        EXPECT_THAT(got.told, AllOf(HasSubstr(login), HasSubstr(each.told))) << each.script;
        EXPECT_EQ(stored(), token("first")) << each.script;
    }
    // The twin: an honest change.
    EXPECT_THAT(agent("honest", "echo '" + token("second") + "' > ~/" + login).told, IsEmpty());
    EXPECT_EQ(stored(), token("second") + "\n");
}

TEST_F(Agents, AnotherDirectoryInThePlaceOfTheHomeIsRefused) {
    const auto home = opened(named("work"));
    auto kept = home.directory();
    container::profile profile;
    profile.argv = {"true"};
    profile.home = kept;
    EXPECT_TRUE(container::make_plan(profile));
    profile.home->identity.inode += 1;
    EXPECT_EQ(container::make_plan(profile).error().step, "home.replaced");
}

} // namespace
