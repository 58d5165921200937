// Programs that people run, under the filter that an agent gets.
#include "support/filtered_process.hpp"
#include <iostream>

namespace glove::container::seccomp {
namespace {

struct peer {
    const char* program;
    const char* script; // for sh; $0 is not used
    bool sealed;        // works without one socket by name, too
};
constexpr auto peers = std::to_array<peer>({
    {"bash", "exec bash -c 'set -e; echo a | cat > b; test \"$(cat b)\" = a; (exit 0) & wait'",
     true},
    {"git",
     "export HOME=$PWD; git init -q r && cd r && echo x > f && git add f && git -c "
     "user.name=a -c user.email=a@b commit -qm m && git status --porcelain",
     true},
    {"python3",
     "exec python3 -c 'import subprocess, threading, os\n"
     "assert subprocess.check_output([\"echo\", \"x\"]) == b\"x\\n\"\n"
     "t = threading.Thread(target=os.getpid); t.start(); t.join()'",
     true},
    {"python3",
     "exec python3 -c 'import asyncio\n"
     "async def main():\n"
     "    p = await asyncio.create_subprocess_exec(\"cat\", stdin=-1, stdout=-1)\n"
     "    assert (await p.communicate(b\"x\"))[0] == b\"x\"\n"
     "asyncio.run(main())'",
     true},
    {"node",
     "exec node -e 'const {Worker} = require(\"worker_threads\");"
     "const c = require(\"child_process\");"
     "if (c.spawnSync(\"cat\", {input: \"x\"}).stdout.toString() !== \"x\") process.exit(1);"
     "const p = c.spawn(\"cat\"); p.stdin.end(\"y\"); let got = \"\";"
     "p.stdout.on(\"data\", d => got += d);"
     "p.on(\"close\", () => new Worker(\"0\", {eval: true})"
     ".on(\"exit\", k => process.exit(got === \"y\" ? k : 1)))'",
     true},
    {"cc", "echo 'int main(void) { return 0; }' > a.c && cc a.c -o a && ./a", true},
    {"java", "exec java -version 2>&1", true},
    {"strace", "exec strace -f -o /dev/null sh -c true", true},
    {"gdb", "gdb -q -batch -ex run -ex 'print $_exitcode' --args /bin/true | grep -q '= 0$'", true},
    {"chromium",
     "echo '<p>no</p><script>document.body.innerText = 1 + 1 + \"yes\"</script>' > t.html; "
     "chromium --headless --no-sandbox --disable-gpu --user-data-dir=$PWD/c --dump-dom "
     "file://$PWD/t.html 2>/dev/null | grep -q 2yes",
     false},
    {"sqlite3", "exec sqlite3 d.db 'create table t(a); insert into t values (1); select a from t'",
     true},
});

auto installed(const std::string& name) -> bool {
    return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

TEST(SeccompPeers, everyday_programs_work) {
    for (const auto& p : peers) {
        if (!installed(p.program)) {
            std::cout << "not installed, not tested: " << p.program << '\n';
            continue;
        }
        for (const bool drop : identities())
            for (auto how : {offline, local, sealed_0}) {
                if (how.tier == network_tier::sealed && !p.sealed) continue;
                SCOPED_TRACE(std::string{p.script} + ' ' + std::string{to_string(how.tier)} +
                             (drop ? " (as nobody)" : ""));
                how.drop = drop;
                const auto seen = spend(how, [&]() -> long {
                    const auto pid = ::fork();
                    if (pid == 0) {
                        const int null = ::open("/dev/null", O_RDWR);
                        for (const int stream : {0, 1})
                            require(null >= 0 && ::dup2(null, stream) >= 0, 118);
                        ::execlp("sh", "sh", "-c", p.script, nullptr);
                        ::_exit(127);
                    }
                    int status = 0;
                    return ::waitpid(pid, &status, 0) == pid ? status : -2;
                });
                EXPECT_EQ(seen.value, 0);
            }
    }
}

} // namespace
} // namespace glove::container::seccomp
