// The rows, and how each kind of value is checked. Pure: no file, variable or clock is looked at.
#include <algorithm>
#include <array>
#include <glove/base/numbers.hpp>
#include <glove/base/text.hpp>
#include <glove/base/times.hpp>
#include <glove/container/network_tier.hpp>
#include <glove/host/homes.hpp>
#include <glove/host/settings.hpp>
#include <glove/net/egress_rules.hpp>
#include <glove/sys/files.hpp>
#include <optional>

namespace glove::host {

// `check` makes the text that the option takes of the one in the file. It answers what is wrong
// with it, to go after the value; nothing when it is right.
struct setting_kind {
    bool list;
    bool appends;                     // a list whose values join the parent's
    std::span<const toml_type> types; // of the value, or of each item of a list
    std::string_view takes;
    std::optional<std::string> (*check)(std::string& text, const std::string& home);
};

namespace {

using complaint = std::optional<std::string>;

constexpr std::size_t most_items = 256;
constexpr std::size_t longest_text = 64UL * 1024;
constexpr unsigned most_connections = 65'536;

[[nodiscard]] auto check_word(std::string& text, const std::string&) -> complaint {
    if (text.empty()) return "is empty";
    return std::nullopt;
}

[[nodiscard]] auto check_path(std::string& text, const std::string& home) -> complaint {
    if (text == "~" || text.starts_with("~/")) {
        if (home.empty()) return "needs a home, and HOME is not set to an absolute path";
        text = home + text.substr(1);
    }
    if (!text.starts_with('/')) return "is not an absolute path, nor one that begins with ~/";
    return std::nullopt;
}

// The caller's directory is the one relative path: it says nothing about what is in there.
[[nodiscard]] auto check_workspace(std::string& text, const std::string& home) -> complaint {
    return text == "." ? std::nullopt : check_path(text, home);
}

// UP=PATH
[[nodiscard]] auto check_server_path(std::string& text, const std::string& home) -> complaint {
    const auto equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) return "is not UP=PATH";
    auto path = text.substr(equals + 1);
    auto out = check_path(path, home);
    text.replace(equals + 1, std::string::npos, path);
    return out;
}

[[nodiscard]] auto is_name_byte(char c) -> bool {
    return is_lower(c) || is_upper(c) || is_digit(c) || c == '_';
}

// The same words serve for every project.
[[nodiscard]] auto check_inner_path(std::string& text, const std::string& home) -> complaint {
    if (text.starts_with('/') || text.starts_with('~')) return check_path(text, home);
    if (text.empty() || !sys::is_normal_absolute("/" + text))
        return "is not a plain path below your working directory";
    return std::nullopt;
}

[[nodiscard]] auto check_variable(std::string& text, const std::string&) -> complaint {
    const auto name = std::string_view{text}.substr(0, text.find('='));
    if (name.empty() || is_digit(name.front()) || !std::ranges::all_of(name, is_name_byte))
        return "is not NAME or NAME=VALUE, with a name of letters, digits and _";
    return std::nullopt;
}

[[nodiscard]] auto check_tier(std::string& text, const std::string&) -> complaint {
    const auto tier = container::parse_network_tier(text);
    if (!tier || *tier == container::network_tier::egress) return "is not offline, local or sealed";
    return std::nullopt;
}

[[nodiscard]] auto check_rule(std::string& text, const std::string&) -> complaint {
    auto rule = net::parse_rule(text);
    if (!rule) return "cannot be used: " + rule.error().detail;
    return std::nullopt;
}

[[nodiscard]] auto check_port(std::string& text, const std::string&) -> complaint {
    if (!net::parse_port(text)) return "is not a port from 1 to 65535";
    return std::nullopt;
}

[[nodiscard]] auto check_connections(std::string& text, const std::string&) -> complaint {
    const auto count = parse_decimal(text, most_connections);
    if (!count || *count == 0) return "is not between 1 and " + std::to_string(most_connections);
    return std::nullopt;
}

[[nodiscard]] auto check_duration(std::string& text, const std::string&) -> complaint {
    const auto time = parse_duration(text);
    return time.complaint.empty() ? complaint{} : complaint{time.complaint};
}

[[nodiscard]] auto check_size(std::string& text, const std::string&) -> complaint {
    if (!parse_size(text)) return "is not a size such as 64KB, 10MB or 2GB";
    return std::nullopt;
}

[[nodiscard]] auto check_processes(std::string& text, const std::string&) -> complaint {
    constexpr std::uint64_t most = 4'194'303; // what the kernel can have
    const auto count = parse_decimal(text, most);
    if (!count || *count == 0) return "is not between 1 and " + std::to_string(most);
    return std::nullopt;
}

[[nodiscard]] auto check_processors(std::string& text, const std::string&) -> complaint {
    constexpr std::uint64_t most = 100'000;
    const auto hundredths = parse_hundredths(text, most);
    if (!hundredths || *hundredths == 0) return "is not a number of processors such as 2 or 0.5";
    return std::nullopt;
}

[[nodiscard]] auto check_home(std::string& text, const std::string&) -> complaint {
    if (text == "none" || is_home_name(text)) return std::nullopt;
    return "is not none, nor a name of a-z, 0-9, '.', '_' and '-'";
}

[[nodiscard]] auto check_nothing(std::string&, const std::string&) -> complaint {
    return std::nullopt;
}

constexpr std::array text_only{toml_type::text};
constexpr std::array integer_only{toml_type::integer};
constexpr std::array text_or_integer{toml_type::text, toml_type::integer};
constexpr std::array truth_only{toml_type::truth};
constexpr std::array text_or_truth{toml_type::text, toml_type::truth};

constexpr setting_kind words{true, false, text_only, "an array of strings", check_word};
constexpr setting_kind workspace{false, false, text_only,
                                 "a string: \".\", an absolute path, or one that begins with ~/",
                                 check_workspace};
constexpr setting_kind texts{true, true, text_only, "an array of strings", check_word};
constexpr setting_kind file{false, false, text_only,
                            "a string: an absolute path, or one that begins with ~/", check_path};
constexpr setting_kind paths{true, true, text_only,
                             "an array of strings: absolute paths, or such that begin with ~/",
                             check_path};
constexpr setting_kind inner_paths{
    true, true, text_only,
    "an array of strings: paths, of which relative ones start at your working directory",
    check_inner_path};
constexpr setting_kind server_paths{
    true, true, text_only,
    "an array of strings: UP=PATH, with an absolute path, or one that begins with ~/",
    check_server_path};
constexpr setting_kind variables{true, true, text_only, "an array of strings: NAME or NAME=VALUE",
                                 check_variable};
constexpr setting_kind tier{false, false, text_only, "a string: offline, local or sealed",
                            check_tier};
constexpr setting_kind rules{true, true, text_only, "an array of strings: rules", check_rule};
constexpr setting_kind ports{true, true, integer_only, "an array of integers: ports", check_port};
constexpr setting_kind connections{false, false, integer_only, "an integer", check_connections};
constexpr setting_kind duration{false, false, text_only, "a string such as \"90s\"",
                                check_duration};
constexpr setting_kind size{false, false, text_or_integer, "a string such as \"64MB\", or bytes",
                            check_size};
constexpr setting_kind processes{false, false, integer_only, "an integer", check_processes};
constexpr setting_kind processors{false, false, text_or_integer,
                                  "an integer, or a string such as \"0.5\"", check_processors};
constexpr setting_kind home_name{false, false, text_only, "a string: a name, or \"none\"",
                                 check_home};
constexpr setting_kind agent_key{false, false, text_or_truth,
                                 "a string: a fingerprint or a comment; or true, for the only key",
                                 check_word};
constexpr setting_kind truth{false, false, truth_only, "true or false", check_nothing};

// The order is that of `glove profile show`.
constexpr std::array rows{
    setting{"command", &words, "", "The program, and the words that always follow it"},
    setting{"workspace", &workspace, "--workspace", "The directory to start in"},
    setting{"read", &paths, "--read", "Files and directories that may be read"},
    setting{"write", &paths, "--write", "Files and directories that may be changed"},
    setting{"hide", &paths, "--hide", "Paths inside of those that stay unreadable"},
    setting{"unprotect", &inner_paths, "--unprotect",
            "Protected paths that may be changed after all"},
    setting{"path", &truth, "--path", "Offer the programs of your home that are on your PATH"},
    setting{"env", &variables, "--env", "Variables that are passed on if you have them, or set"},
    setting{"home", &home_name, "--home", "The home that is kept for further runs"},
    setting{"net", &tier, "--net", "The network tier"},
    setting{"egress-allow", &rules, "--egress-allow", "Destinations that may be reached"},
    setting{"publish", &ports, "--publish", "Ports served inside that this machine may reach"},
    setting{"egress-connections", &connections, "--egress-connections", "Connections at once"},
    setting{"ssh-agent", &agent_key, "--ssh-agent", "The key of your ssh agent that may sign"},
    setting{"wall-time", &duration, "--wall-time", "How long the command may take"},
    setting{"output-bytes", &size, "--output-bytes", "How much it may print"},
    setting{"memory", &size, "--memory", "Memory of all its processes together"},
    setting{"pids", &processes, "--pids", "Processes and threads at once"},
    setting{"cpus", &processors, "--cpus", "Processors that it may use at once"},
    setting{"cpu-time", &duration, "--cpu-time", "Processor time of all its processes together"},
    setting{"disk", &size, "--disk", "All that it may write"},
    setting{"scratch-bytes", &size, "--scratch-bytes", "Room for its private files"},
    setting{"pty", &truth, "--pty", "A terminal of its own on all three streams"},
    setting{"upstream", &texts, "--upstream", "Tool servers of glove run"},
    setting{"mcp-config", &paths, "--mcp-config", "Files that name tool servers of glove run"},
    setting{"contain-upstreams", &truth, "--contain-upstreams",
            "Tool servers in sandboxes of their own"},
    setting{"upstream-read", &server_paths, "--upstream-read", "What contained servers may read"},
    setting{"upstream-write", &server_paths, "--upstream-write",
            "What contained servers may change"},
    setting{"upstream-egress", &texts, "--upstream-egress", "What contained servers may reach"},
    setting{"allow", &texts, "--allow", "Tools of glove run that may be called"},
    setting{"deny", &texts, "--deny", "Tools of glove run that may not be called"},
    setting{"policy", &file, "--policy", "The file of rules about tools of glove run"},
};

[[nodiscard]] auto refuse(const setting& row, const std::string& what) {
    return fail(errc::invalid_input, "profile.value", what,
                std::string{row.key} + " takes " + std::string{row.kind->takes});
}

[[nodiscard]] auto shown(const toml_value& value) -> std::string {
    switch (value.type) {
    case toml_type::text: return in_quotes(value.text);
    case toml_type::integer:
    case toml_type::truth: return value.text;
    case toml_type::list: return "an array";
    case toml_type::other: break;
    }
    return "this";
}

[[nodiscard]] auto decode_one(const setting& row, const toml_value& value, const std::string& home)
    -> result<std::string> {
    if (std::ranges::count(row.kind->types, value.type) == 0)
        return refuse(row, shown(value) + " is of another type");
    if (value.text.size() > longest_text) return refuse(row, shown(value) + " is too long");
    if (value.text.find('\0') != std::string::npos)
        return refuse(row, shown(value) + " holds a NUL");
    auto out = value.text;
    if (const auto wrong = row.kind->check(out, home))
        return refuse(row, shown(value) + " " + *wrong);
    return out;
}

// The program itself may be a name, or a path as every other.
[[nodiscard]] auto check_program(const setting& row, std::string& program, const std::string& home)
    -> result<> {
    if (program.find('/') == std::string::npos) return {};
    const auto given = program;
    if (const auto wrong = check_path(program, home))
        return refuse(row, in_quotes(given) + " " + *wrong);
    return {};
}

[[nodiscard]] auto is_bare(const setting& row, std::string_view value) -> bool {
    // An integer is not written in quotes where it may stand without.
    if (row.kind->types.front() != toml_type::text) return true;
    if (is_switch(row)) return value == "true" || value == "false";
    return row.kind->types.size() > 1 && parse_decimal(value, ~std::uint64_t{0} >> 1U).has_value();
}

[[nodiscard]] auto one_to_toml(const setting& row, const std::string& value) -> std::string {
    return is_bare(row, value) ? value : toml_text(value);
}

} // namespace

auto setting_rows() noexcept -> std::span<const setting> { return rows; }

auto find_setting(std::string_view key) noexcept -> const setting* {
    const auto* const found = std::ranges::find(rows, key, &setting::key);
    return found == rows.end() ? nullptr : found;
}

auto is_list(const setting& row) noexcept -> bool { return row.kind->appends; }
auto is_switch(const setting& row) noexcept -> bool {
    return std::ranges::count(row.kind->types, toml_type::truth) != 0;
}
auto what_it_takes(const setting& row) noexcept -> std::string_view { return row.kind->takes; }

auto needs_network(std::string_view key) noexcept -> bool {
    return key == "egress-allow" || key == "publish";
}

auto settings::find(std::string_view key) const -> const std::vector<std::string>* {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
}

void settings::set(const setting& row, std::vector<std::string> values) {
    values_.insert_or_assign(row.key, std::move(values));
}

namespace {

[[nodiscard]] auto name_of(const std::string& variable) -> std::string_view {
    return std::string_view{variable}.substr(0, variable.find('='));
}

// A variable is known by its name: the nearer one replaces it.
[[nodiscard]] auto is_same(const setting& row, const std::string& a, const std::string& b) -> bool {
    return row.kind == &variables ? name_of(a) == name_of(b) : a == b;
}

} // namespace

void settings::overlay(const settings& nearer) {
    if (nearer.find(network_key) != nullptr)
        std::erase_if(values_, [](const auto& entry) { return needs_network(entry.first); });
    for (const auto& [key, values] : nearer.values_) {
        const auto* const row = find_setting(key);
        auto& own = values_[row->key];
        if (!is_list(*row)) {
            own = values;
            continue;
        }
        for (const auto& value : values) {
            std::erase_if(own, [&](const auto& old) { return is_same(*row, old, value); });
            own.push_back(value);
        }
    }
}

auto decode(const setting& row, const toml_value& value, const std::string& home)
    -> result<std::vector<std::string>> {
    std::vector<std::string> out;
    if (!row.kind->list) {
        GLOVE_TRY(auto one, decode_one(row, value, home));
        out.push_back(std::move(one));
        return out;
    }
    if (value.type != toml_type::list) return refuse(row, shown(value) + " is not an array");
    if (value.items.size() > most_items)
        return refuse(row, "more than " + std::to_string(most_items) + " values");
    if (value.items.empty() && !row.kind->appends) return refuse(row, "the array is empty");
    for (const auto& item : value.items) {
        GLOVE_TRY(auto one, decode_one(row, item, home));
        const auto again =
            row.kind->appends && std::ranges::any_of(out, [&](const std::string& before) {
                return is_same(row, before, one);
            });
        if (again) return refuse(row, shown(item) + " is there more than once");
        out.push_back(std::move(one));
    }
    if (row.kind == &words) GLOVE_CHECK(check_program(row, out.front(), home));
    return out;
}

auto to_toml(const setting& row, const std::vector<std::string>& values) -> std::string {
    auto out = std::string{row.key} + " = ";
    if (!row.kind->list) return out + one_to_toml(row, values.front());
    constexpr std::size_t one_line = 3;
    const bool tall = values.size() > one_line;
    out += '[';
    for (std::size_t i = 0; i < values.size(); ++i) {
        out += tall ? "\n    " : i > 0 ? " " : "";
        out += one_to_toml(row, values[i]);
        if (tall || i + 1 < values.size()) out += ',';
    }
    return out + (tall ? "\n]" : "]");
}

auto toml_text(std::string_view text) -> std::string {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out{"\""};
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') (out += '\\') += c;
        else if (byte < 0x20 || byte == 0x7f)
            ((out += "\\u00") += digits[byte >> 4U]) += digits[byte & 15U];
        else out += c;
    }
    return out += '"';
}

} // namespace glove::host
