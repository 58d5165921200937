// What an operator asks for: one agent process and exactly what it may see and use.
//
// A profile is a wish, in the operator's own words. Nothing in it has been looked up on the host;
// `make_plan` does that, and refuses what cannot be granted exactly as asked.
#pragma once
#include <chrono>
#include <cstdint>
#include <glove/container/network_tier.hpp>
#include <glove/sys/files.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glove::container {

enum class access : std::uint8_t { read, write };

// One path the agent sees under its own absolute name. `flag` is how the operator asked for it
// ("--read"), so that a refusal can name it.
struct grant {
    std::string_view flag;
    std::string path; // as given; relative ones start at the caller's working directory
    access mode = access::read;
    // What a program needs. It is left out where it can be seen anyway, and listed apart.
    bool for_program = false;
};

struct limits {
    std::optional<std::chrono::nanoseconds> wall_time;
    std::optional<std::uint64_t> output_bytes;  // stdout and stderr together
    std::optional<std::uint64_t> scratch_bytes; // everything private and writable; default from RAM
    std::optional<std::uint64_t> disk_bytes;    // everything that it can write anywhere
    // Of all its processes together; these take a control group.
    std::optional<std::uint64_t> memory_bytes;
    std::optional<std::uint64_t> processes;      // at once, threads included
    std::optional<std::uint64_t> cpu_hundredths; // of one processor
    std::optional<std::chrono::nanoseconds> cpu_time;
};

// Destinations that may be reached, and ports that the host may reach; both empty: neither.
struct egress_wish {
    std::vector<std::string> allow;     // rules of --egress-allow
    std::vector<std::uint16_t> publish; // ports of --publish
    unsigned connections = 256;         // at once; further ones wait
};

// A Unix socket inside, in `listener_directory`, on which the host's side accepts.
struct listener_wish {
    std::string_view flag;     // how the operator asked for it, so that a refusal can name it
    std::string name;          // of the socket's file
    std::string variable = {}; // of the agent's environment, set to the path; empty: none
};

// A file beside those sockets, which nobody inside can change: a program of Glove's own, or a text.
struct companion {
    std::string name;         // relative to `listener_directory`
    std::string program = {}; // a path of the host; empty: `text` is what is in the file
    std::string text = {};
    std::string variable = {}; // of the agent's environment, set to the path; empty: none
};

// A directory of the host that is the agent's home instead of a private one that ends with the run.
struct kept_home {
    std::string name; // for people
    std::string path; // canonical
    // What was opened there; without a type for a plan that is only explained, and nothing is
    // there.
    sys::file_identity identity;
};

struct profile {
    std::vector<std::string> argv; // never empty
    std::optional<std::string> workspace;
    std::vector<grant> grants;
    std::vector<std::string> hidden;      // paths inside a grant that must not be seen
    std::vector<std::string> unprotected; // protected paths that may be changed after all
    std::vector<std::pair<std::string, std::string>> environment; // NAME, VALUE
    std::vector<std::string> path_directories;                    // before the system's on PATH
    network_tier network = network_tier::offline;
    egress_wish egress;
    std::optional<std::string> ssh_agent; // a key's fingerprint or comment; empty: the only one
    std::vector<listener_wish> listeners;
    std::vector<companion> companions; // only together with a listener
    container::limits limits;
    std::optional<kept_home> home;
    // Glove's own files: no grant may hold one or lie inside one.
    std::vector<std::string> control_paths;
    std::vector<std::string> notes; // what the operator should know; a sentence each
};

} // namespace glove::container
