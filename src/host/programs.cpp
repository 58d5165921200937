// Every file that is found is pinned and judged with all directories above it before it counts; the
// chain of interpreters is bounded. Nothing is run, and nothing that the run may write is found.
#include "host/programs.hpp"
#include "host/program_places.hpp"
#include "host/trusted.hpp"
#include <algorithm>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/container/plan.hpp>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace glove::host {

namespace {

constexpr step_name step{"profile.program"};
constexpr int deepest_interpreter = 4;
constexpr std::size_t longest_first_line = 1024;

[[nodiscard]] auto name_of(std::string_view path) -> std::string_view {
    return path.substr(path.rfind('/') + 1);
}

void add(std::vector<std::string>& to, std::string path) {
    if (std::ranges::count(to, path) == 0) to.push_back(std::move(path));
}

// A file that could be the program. Nothing, when there is none; an error, when others could have
// put it there.
[[nodiscard]] auto candidate(const std::string& path, const program_search& search)
    -> result<std::optional<trusted_file>> {
    if (!sys::is_normal_absolute(path) || is_writable(path, search) || is_shim(path, search.home))
        return std::nullopt;
    struct ::stat found{};
    if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode) ||
        ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) != 0)
        return std::nullopt;
    GLOVE_TRY(auto file, find_trusted(path, own_group::allowed, step));
    if (is_written(path, file, search) || is_shim(file.real, search.home)) return std::nullopt;
    return file;
}

[[nodiscard]] auto first_of(const std::vector<std::string>& places, const program_search& search)
    -> result<std::string> {
    for (const auto& place : places) {
        GLOVE_TRY(const auto found, candidate(place, search));
        if (found) return place;
    }
    return std::string{};
}

// The directory that makes one whole with the file: a Node.js version, a Python environment, an npm
// package with what it depends on. The file itself, when there is none.
[[nodiscard]] auto whole_of(const std::string& path, const std::string& real,
                            const program_search& search, bool is_interpreter) -> std::string {
    auto whole = is_interpreter ? version_directory(real, search) : std::string{};
    const auto around = sys::parent_of(sys::parent_of(real));
    if (whole.empty() && (!is_interpreter || sys::exists(around + "/pyvenv.cfg")))
        whole = package_directory(path, real, search);
    return whole.empty() || !is_closed_to_others(whole) ? real : whole;
}

[[nodiscard]] auto refuse_wide(const std::string& path, const std::string& whole,
                               const program_search& search) -> result<> {
    if (std::ranges::any_of(search.homes,
                            [&](const auto& home) { return sys::holds(whole, home); }))
        return fail(errc::not_permitted, step, path + " needs " + whole + ", which holds your home",
                    "install it into a directory of its own");
    for (const auto& own : search.closed)
        if (sys::holds(whole, own))
            return fail(errc::not_permitted, step,
                        path + " needs " + whole + ", which holds Glove's own files at " + own,
                        "install it into a directory of its own");
    return {};
}

// The words of a first line that names an interpreter; none for any other file.
[[nodiscard]] auto first_line_words(const trusted_file& file) -> std::vector<std::string> {
    const auto head = read_head(file, longest_first_line);
    std::vector<std::string> out;
    if (!head.starts_with("#!")) return out;
    auto line = std::string_view{head}.substr(2);
    line = line.substr(0, line.find('\n'));
    while (!line.empty()) {
        const auto end = std::min(line.find_first_of(" \t\r"), line.size());
        if (end > 0) out.emplace_back(line.substr(0, end));
        line.remove_prefix(std::min(end + 1, line.size()));
    }
    return out;
}

// The interpreter's name or path: what `env` would look for, or what the line says.
[[nodiscard]] auto interpreter_of(const trusted_file& file) -> std::string {
    const auto words = first_line_words(file);
    if (words.empty()) return {};
    if (name_of(words.front()) != "env") return words.front();
    const auto named = std::find_if(words.begin() + 1, words.end(), [](const std::string& word) {
        return !word.starts_with('-') && word.find('=') == std::string::npos;
    });
    return named == words.end() ? std::string{} : *named;
}

// Where an interpreter is looked for: beside the script first, so that a version manager's program
// gets the version that it was installed with.
[[nodiscard]] auto find_interpreter(const std::string& wanted, const std::string& script,
                                    const std::string& script_real, const program_search& search)
    -> result<std::string> {
    if (wanted.starts_with('/')) return first_of({wanted}, search);
    std::vector<std::string> places{sys::parent_of(script) + "/" + wanted};
    if (const auto version = version_directory(script_real, search); !version.empty())
        places.push_back(version + "/bin/" + wanted);
    for (auto& place : places_of(wanted, {}, search)) places.push_back(std::move(place));
    return first_of(places, search);
}

struct walk {
    const program_search& search;
    closure out;
};

[[nodiscard]] auto follow(walk& at, const std::string& path, int depth) -> result<> {
    GLOVE_TRY(const auto file, find_trusted(path, own_group::allowed, step));
    const bool is_interpreter = depth > 0;
    if (!container::is_system_place(file.real)) {
        auto whole = whole_of(path, file.real, at.search, is_interpreter);
        GLOVE_CHECK(refuse_wide(path, whole, at.search));
        add(at.out.files, std::move(whole));
    }
    if (!container::is_system_place(path))
        add(at.out.files, path); // a link of the system's is there
    add(at.out.directories, sys::parent_of(path));
    const auto wanted = interpreter_of(file);
    if (wanted.empty()) return {};
    if (depth == deepest_interpreter)
        return fail(errc::invalid_input, step, path + ": too many interpreters of interpreters");
    GLOVE_TRY(const auto interpreter, find_interpreter(wanted, path, file.real, at.search));
    if (interpreter.empty())
        return fail(errc::not_found, step,
                    path + " is run by " + in_quotes(wanted) + ", which was not found",
                    "install it, or put its directory on your PATH");
    return follow(at, interpreter, depth + 1);
}

} // namespace

void closure::join(closure other) {
    for (auto& file : other.files) add(files, std::move(file));
    for (auto& directory : other.directories) add(directories, std::move(directory));
}

auto closure_of(const std::string& path, const program_search& search) -> result<closure> {
    walk at{search, {}};
    GLOVE_CHECK(follow(at, path, 0));
    // What the system shows is there, and the directories of its own PATH are on the inner one.
    std::erase_if(at.out.directories, is_on_system_path);
    return std::move(at.out);
}

auto find_program(std::string_view name, std::span<const std::string_view> own_places,
                  const program_search& search) -> result<found_program> {
    const std::string wanted{name};
    const auto places =
        wanted.starts_with('/') ? std::vector{wanted} : places_of(wanted, own_places, search);
    GLOVE_TRY(auto path, first_of(places, search));
    if (path.empty())
        return fail(errc::not_found, step,
                    wanted + " was not found on your PATH, nor where npm, nvm and its own "
                             "installer put it");
    GLOVE_TRY(auto needs, closure_of(path, search));
    return found_program{std::move(path), std::move(needs)};
}

} // namespace glove::host
