// What the agent is handed: three streams, named variables, plain signals and limits; words of the
// command line are never options of Glove; a terminal cannot be typed into.
#include "agents/scene.hpp"
#include "support/pseudo_terminal.hpp"
#include <sys/resource.h>
#include <sys/socket.h>

namespace glove::test {
namespace {

class Descriptors : public Scene {};

// Every kind, without close-on-exec, low and high.
void open_many() {
    for (const int number : {3, 5, 9, 63, 200, 1000}) {
        const int directory = ::open("/", O_RDONLY | O_DIRECTORY);
        if (directory != number) ::dup2(directory, number);
    }
    std::array<int, 2> pair{};
    (void)::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data());
    (void)::open("/etc/passwd", O_RDONLY);
    (void)!::pipe(pair.data());
}

TEST_F(Descriptors, of_the_caller_do_not_reach_the_agent) {
    for (const std::string attack : {"open_descriptors", "leave_by_directory"}) {
        auto asked = inside_command({attack});
        asked.before_exec = open_many;
        EXPECT_TRUE(denied(judged(run(asked)))) << attack;
        EXPECT_TRUE(worked(judged(
            run({.argv = {hostile_binary, attack}, .environment = {}, .before_exec = open_many}))));
    }
    auto asked = inside_command({"open_descriptors"}, {"--output-bytes", "1MB"});
    asked.before_exec = open_many;
    EXPECT_TRUE(denied(judged(run(asked))));
}

TEST_F(Descriptors, that_are_directories_are_refused_as_streams) {
    const int directory = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int handle = ::open("/", O_PATH | O_CLOEXEC);
    for (const int given : {directory, handle})
        for (const int stream : {0, 1, 2}) {
            auto asked = inside_command({"create", workspace + "/ran"});
            asked.before_exec = [given, stream] { (void)::dup2(given, stream); };
            EXPECT_EQ(run(asked).status(), 125) << stream;
        }
    EXPECT_FALSE(std::filesystem::exists(workspace + "/ran"));
    auto twin = command{.argv = {hostile_binary, "leave_by_directory"}, .environment = {}};
    twin.standard_input = directory;
    EXPECT_TRUE(worked(judged(run(twin))));
    ::close(directory);
    ::close(handle);
}

TEST_F(Descriptors, that_the_caller_closed_are_not_filled_with_something_else) {
    for (const int stream : {0, 1, 2}) {
        auto asked = inside_command({"open_descriptors"});
        asked.before_exec = [stream] { (void)::close(stream); };
        EXPECT_EQ(run(asked).status(), static_cast<int>(verdict::denied)) << stream;
    }
}

TEST_F(Descriptors, a_file_given_as_input_shows_no_neighbour) {
    put(elsewhere + "/given", "given");
    put(elsewhere + "/neighbour", "secret");
    const int given = ::open((elsewhere + "/given").c_str(), O_RDONLY | O_CLOEXEC);
    for (const std::string name : {"/proc/self/fd/0/../neighbour", "/dev/stdin/../neighbour"}) {
        auto asked = inside_command({"read", name});
        asked.standard_input = given;
        EXPECT_TRUE(denied(judged(run(asked)))) << name;
    }
    auto asked = inside_command({"link_descriptor", "/dev/stdin", workspace + "/kept"});
    asked.standard_input = given;
    EXPECT_TRUE(denied(judged(run(asked)), "EXDEV"));
    asked = inside_command({"read", "/dev/stdin"});
    asked.standard_input = given;
    EXPECT_EQ(judged(run(asked)).said, "given");
    ::close(given);
}

// A stated residual: a stream is the caller's own open file, and the kernel lets a process open its
// own descriptor again with whatever the invoker may do to that file.
TEST_F(Descriptors, residual_a_file_given_as_input_can_be_opened_again_for_writing) {
    put(elsewhere + "/given", "given!");
    const int given = ::open((elsewhere + "/given").c_str(), O_RDONLY | O_CLOEXEC);
    auto asked = inside_command({"reopen_for_writing", "0"});
    asked.standard_input = given;
    EXPECT_TRUE(worked(judged(run(asked))));
    EXPECT_EQ(contents(elsewhere + "/given"), "owned\n");
    ::close(given);
    // What the invoker may not write, the agent may not either.
    const int program = ::open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
    asked.standard_input = program;
    if (!is_root()) {
        EXPECT_TRUE(denied(judged(run(asked)), "EACCES"));
    }
    ::close(program);
}

TEST_F(Descriptors, the_working_directory_is_inside) {
    EXPECT_TRUE(denied(inside({"outer_directory", workspace}), workspace));
    const auto without = judged(run(glove_exec(
        home, {"--read", hostile_binary}, {hostile_binary, "outer_directory", "/home/agent"})));
    EXPECT_TRUE(denied(without, "/home/agent"));
    EXPECT_TRUE(worked(bare({"outer_directory", "/home/agent"})));
}

// -- environment ----------------------------------------------------------------------------------

class Environment : public Scene {
protected:
    [[nodiscard]] auto with_secrets(const words& attack, const words& options = {}) const
        -> outcome {
        auto asked = inside_command(attack, options);
        asked.environment["API_KEY"] = "s3cr3t";
        asked.environment["SSH_AUTH_SOCK"] = "/run/s3cr3t.sock";
        asked.environment["LD_LIBRARY_PATH"] = "/s3cr3t";
        asked.environment["LC_ALL"] = "C.UTF-8";
        asked.environment["LC_API_KEY"] = "s3cr3t";
        asked.environment["LC_TIME"] = "C";
        return judged(run(asked));
    }
};

TEST_F(Environment, holds_no_variable_that_was_not_named) {
    EXPECT_TRUE(denied(with_secrets({"in_environment", "s3cr3t"}), "not there"));
    EXPECT_TRUE(denied(with_secrets({"environment", "XDG_STATE_HOME"})));
    EXPECT_EQ(with_secrets({"environment", "API_KEY"}, {"--env", "API_KEY"}).said, "s3cr3t");
    EXPECT_EQ(with_secrets({"environment", "MINE"}, {"--env", "MINE=a=b"}).said, "a=b");
    EXPECT_EQ(with_secrets({"environment", "LC_ALL"}).said, "C.UTF-8");
    EXPECT_EQ(with_secrets({"environment", "LC_TIME"}).said, "C");
    EXPECT_TRUE(denied(with_secrets({"environment", "LC_API_KEY"}), "not set"));
    EXPECT_EQ(with_secrets({"environment", "LC_API_KEY"}, {"--env", "LC_API_KEY"}).said, "s3cr3t");
    EXPECT_EQ(with_secrets({"environment", "HOME"}).said, "/home/agent");
    EXPECT_EQ(with_secrets({"environment", "TMPDIR"}).said, "/tmp");
    EXPECT_EQ(with_secrets({"environment", "GLOVE_SANDBOXED"}).said, "1");
}

TEST_F(Environment, managed_names_cannot_be_set) {
    for (const std::string name :
         {"PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "SHELL", "GLOVE_SANDBOXED", "GLOVE_X"}) {
        const auto seen = run(glove_exec(home, {"--env", name + "=/evil"}, {"true"}));
        EXPECT_EQ(seen.status(), 2) << seen;
        EXPECT_NE(seen.errors.find(name), std::string::npos) << seen;
    }
    EXPECT_EQ(run(glove_exec(home, {"--env", "PATHS=/x"}, {"true"})).status(), 0);
}

// -- words ----------------------------------------------------------------------------------------

class Words : public Scene {};

TEST_F(Words, after_the_dashes_are_never_options) {
    for (const std::string word :
         {"--help", "--version", "--read", "-h", "--write=/", "--net=local", "--", "-"}) {
        const auto seen = run(glove_exec(home, {}, {word, "/"}));
        EXPECT_EQ(seen.status(), 127) << word << "\n" << seen;
        EXPECT_EQ(seen.output, "") << word;
    }
    const auto seen = run(glove_exec(home, {}, {"echo", "--workspace", "/", "--", "--help"}));
    EXPECT_EQ(seen.output, "--workspace / -- --help\n");
    put(workspace + "/--read", "#!/bin/sh\necho ran\n");
    ASSERT_EQ(::chmod((workspace + "/--read").c_str(), 0755), 0);
    EXPECT_EQ(run(glove_exec(home, {"--workspace", workspace}, {"./--read"})).output, "ran\n");
    EXPECT_EQ(run(glove_exec(home, {"--help"}, {"true"})).status(), 0);
}

TEST_F(Words, are_looked_up_inside_and_nowhere_else) {
    put(elsewhere + "/program", "#!/bin/sh\necho ran\n");
    ASSERT_EQ(::chmod((elsewhere + "/program").c_str(), 0755), 0);
    auto asked = glove_exec(home, {}, {"program"});
    asked.environment["PATH"] = elsewhere + ":/usr/bin:/bin";
    EXPECT_EQ(run(asked).status(), 127);
    EXPECT_EQ(run(glove_exec(home, {}, {elsewhere + "/program"})).status(), 127);
    EXPECT_EQ(run(glove_exec(home, {"--read", elsewhere}, {elsewhere + "/program"})).output,
              "ran\n");
}

// -- signals and limits ---------------------------------------------------------------------------

class Inherited : public Scene {};

void spoil_signals() {
    for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGCHLD, SIGQUIT, SIGHUP})
        (void)::signal(number, SIG_IGN);
    ::sigset_t some;
    ::sigemptyset(&some);
    for (const int number : {SIGUSR1, SIGALRM, SIGCHLD, SIGTERM}) ::sigaddset(&some, number);
    (void)::sigprocmask(SIG_BLOCK, &some, nullptr);
}

TEST_F(Inherited, signals_are_plain) {
    auto asked = inside_command({"inherited_signals"});
    asked.before_exec = spoil_signals;
    EXPECT_TRUE(denied(judged(run(asked)), "none"));
    EXPECT_TRUE(worked(judged(run({.argv = {hostile_binary, "inherited_signals"},
                                   .environment = {},
                                   .before_exec = spoil_signals}))));
}

TEST_F(Inherited, limits_leave_no_core_and_as_many_files_as_the_caller_had) {
    // Of one byte: for none, a program of the host's that core files are handed to would be
    // started.
    EXPECT_TRUE(denied(inside({"core_dumps"}), "1"));
    EXPECT_TRUE(denied(inside({"lower_core_limit"}), "1"));
    EXPECT_TRUE(worked(bare({"lower_core_limit"})));
    EXPECT_TRUE(worked(bare({"core_dumps"})));
    auto asked = inside_command({"other_open_files", "300"});
    asked.before_exec = [] {
        const ::rlimit files{300, 4000};
        (void)::setrlimit(RLIMIT_NOFILE, &files);
    };
    EXPECT_TRUE(denied(judged(run(asked))));
    EXPECT_TRUE(worked(inside({"other_open_files", "301"})));
}

// -- the terminal ---------------------------------------------------------------------------------

class Terminal : public Scene {
protected:
    // At the terminal, which is the session's own.
    [[nodiscard]] auto at_terminal(command asked) const -> outcome {
        asked.standard_input = terminal_.end();
        asked.before_exec = pseudo_terminal::take;
        return judged(run(asked));
    }
    [[nodiscard]] auto inside_at(const std::string& attack) const {
        return at_terminal(inside_command({attack}));
    }
    [[nodiscard]] auto bare_at(const std::string& attack) const {
        return at_terminal({.argv = {hostile_binary, attack}, .environment = {}});
    }

private:
    pseudo_terminal terminal_;
};

TEST_F(Terminal, cannot_be_typed_or_pasted_into) {
    for (const std::string attack :
         {"type_in", "type_in_high", "type_in_by_name", "paste", "paste_high", "discipline"})
        EXPECT_TRUE(denied(inside_at(attack), "EPERM")) << attack;
    const bool permitted = is_root() || contents("/proc/sys/dev/tty/legacy_tiocsti") != "0\n";
    for (const std::string attack : {"type_in", "type_in_high", "type_in_by_name"}) {
        const auto seen = bare_at(attack);
        EXPECT_TRUE(permitted ? worked(seen) : denied(seen, "EIO")) << attack;
    }
    EXPECT_TRUE(worked(bare_at("discipline")));
    EXPECT_NE(bare_at("paste").said, "EPERM"); // ENOTTY: a pseudoterminal has no selection
    EXPECT_TRUE(worked(inside_at("window_size")));
    EXPECT_TRUE(worked(inside_at("own_terminal")));
}

} // namespace
} // namespace glove::test
