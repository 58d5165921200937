// A host of the test's own: a network namespace whose loopback has public and private addresses,
// and a /etc in which the test says what names there are. So nothing of the machine decides a case,
// and no byte leaves it.
#pragma once
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sched.h>
#include <string>
#include <support/forked.hpp>
#include <sys/mount.h>
#include <unistd.h>

namespace glove::test {

constexpr const char* private_address = "10.9.8.7";
constexpr const char* public_address = "93.184.215.14"; // an own address, here
constexpr std::uint32_t private_number = 0x0a090807;
constexpr std::uint32_t public_number = 0x5db8d70e;

inline void write_text(const std::string& path, const std::string& text) {
    std::ofstream{path} << text;
}

class own_host : public ::testing::Environment {
public:
    void SetUp() override {
        enter_user_namespace(CLONE_NEWNET | CLONE_NEWNS, 0, 0);
        ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
        // A new directory over the old, so that both files can be replaced.
        ASSERT_EQ(::mount("etc", "/etc", "tmpfs", 0, "mode=755"), 0);
        names("");
        resolver("127.0.0.1");
        run("link set lo up");
        run("addr add " + std::string{private_address} + "/32 dev lo");
        run("addr add " + std::string{public_address} + "/32 dev lo");
    }
    // The lines of /etc/hosts.
    static void names(const std::string& lines) { write_text("/etc/hosts", lines); }
    static void resolver(const std::string& address) {
        write_text("/etc/resolv.conf", "nameserver " + address + "\noptions timeout:1\n");
    }

private:
    static void run(const std::string& words) {
        ASSERT_EQ(std::system(("PATH=/sbin:/usr/sbin:/bin:/usr/bin ip " + words).c_str()), 0);
    }
};

} // namespace glove::test
