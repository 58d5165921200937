// Reads, joins, filters and prints. One pass over what there is; when following, one more pass each
// time something changes.
#include "host/log_files.hpp"
#include <algorithm>
#include <chrono>
#include <ctime>
#include <glove/base/text.hpp>
#include <glove/host/log.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/standard_output.hpp>
#include <list>

namespace glove::host {

namespace {

constexpr std::size_t most_followed = 256; // files held open
constexpr std::uint64_t most_told = 10;    // malformed lines of one file

// When the machine was started, with room for a clock that was set since.
[[nodiscard]] auto machine_start_ns() -> std::int64_t {
    ::timespec up{};
    (void)::clock_gettime(CLOCK_BOOTTIME, &up);
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    constexpr std::chrono::seconds slack{60};
    return std::chrono::nanoseconds{now - slack}.count() -
           (up.tv_sec * 1'000'000'000LL + up.tv_nsec);
}

class log_view {
public:
    explicit log_view(const log_request& request) : request_{request} {}
    [[nodiscard]] auto show() -> result<bool>;

private:
    struct source {
        log_file file;
        std::uint64_t malformed = 0;
    };
    void open_all();
    void open(const std::string& path, bool asked);
    void read(source& from);
    void take(source& from, const audit::line_cutter::line& line);
    [[nodiscard]] auto print(const std::string& text) const -> result<>;
    [[nodiscard]] auto print_all() -> result<>;
    [[nodiscard]] auto print_fresh() -> result<>;
    [[nodiscard]] auto follow() -> result<>;
    void find_new(log_watch& watch, std::vector<std::string> changed);
    void refuse(const error& problem) {
        good_ = false;
        request_.tell(problem);
    }
    [[nodiscard]] auto from_directory() const -> bool { return request_.files.empty(); }

    const log_request& request_;
    std::list<source> sources_;
    audit::row_joiner joiner_;
    std::vector<std::string> lines_; // by number, when they are printed as they are
    std::size_t next_number_ = 0;
    std::vector<audit::row> fresh_; // while following: what the new records made of their rows
    std::vector<std::string> fresh_lines_;
    bool following_ = false;
    bool good_ = true;
};

void log_view::open(const std::string& path, bool asked) {
    auto opened = log_file::open(path, asked);
    if (!opened) return refuse(opened.error());
    if (request_.follow && sources_.size() == most_followed) sources_.pop_front();
    sources_.push_back({*std::move(opened)});
    read(sources_.back());
    if (!request_.follow) sources_.pop_back();
}

void log_view::open_all() {
    for (const auto& path : request_.files) open(path, true);
    if (!from_directory()) return;
    const auto chosen =
        choose_logs(request_.directory, request_.filter.run, newest_runs, request_.filter.since_ns);
    if (!chosen) return refuse(chosen.error());
    for (const auto& path : chosen->paths) open(path, false);
    if (request_.json) return;
    const auto shown = chosen->paths.size();
    const auto all = std::to_string(chosen->all) + (chosen->all == 1 ? " run in " : " runs in ");
    const bool narrowed = request_.filter.since_ns || !request_.filter.run.empty();
    if (chosen->all == 0) request_.note("there is no record of a run in " + request_.directory);
    else if (shown == chosen->all) request_.note(all + request_.directory);
    else
        request_.note((narrowed ? "" : "the newest ") + std::to_string(shown) + " of " + all +
                      request_.directory);
}

void log_view::read(source& from) {
    if (auto done = from.file.read([&](const auto& line) { take(from, line); }); !done)
        refuse(done.error());
    if (from.malformed > most_told)
        refuse({.code = errc::corrupt,
                .step = "log.line",
                .os = 0,
                .detail = from.file.path() + ": " + std::to_string(from.malformed - most_told) +
                          " more lines cannot be read"});
    from.malformed = std::min(from.malformed, most_told);
    if (from.file.is_torn() && !request_.follow)
        request_.note(from.file.path() + ":" + std::to_string(from.file.next_line()) +
                      ": the last line is not complete and was left out");
}

void log_view::take(source& from, const audit::line_cutter::line& line) {
    const auto read =
        line.too_long
            ? result<audit::record>{fail(errc::limit_exceeded, "log.line", "longer than 16 MiB")}
            : audit::read_record(line.text);
    if (!read) {
        good_ = false;
        if (++from.malformed <= most_told)
            request_.tell({.code = errc::corrupt,
                           .step = "log.line",
                           .os = 0,
                           .detail = from.file.path() + ":" + std::to_string(line.number) + ": " +
                                     read.error().detail});
        return;
    }
    const auto& row = joiner_.add(*read, next_number_++);
    if (following_) {
        fresh_.push_back(row);
        fresh_lines_.emplace_back(line.text);
    } else if (request_.json) lines_.emplace_back(line.text);
}

auto log_view::print(const std::string& text) const -> result<> {
    return request_.json ? sys::print_json(text)
                         : sys::write_all(sys::fd_ref::standard_output(), text);
}

auto log_view::print_all() -> result<> {
    joiner_.settle(machine_start_ns());
    std::vector<const audit::row*> shown;
    for (const auto& row : joiner_.rows())
        if (request_.filter.matches(row)) shown.push_back(&row);
    std::ranges::sort(shown, {}, [](const audit::row* row) {
        return std::pair{row->began_ns, row->numbers.front()};
    });
    if (request_.limit && shown.size() > *request_.limit)
        shown.erase(shown.begin(), shown.end() - static_cast<std::ptrdiff_t>(*request_.limit));
    std::string out;
    if (request_.json) {
        std::vector<std::size_t> numbers;
        for (const auto* const row : shown)
            numbers.insert(numbers.end(), row->numbers.begin(), row->numbers.end());
        std::ranges::sort(numbers);
        for (const auto number : numbers) out.append(lines_[number]).append("\n");
    } else {
        if (!shown.empty() || request_.follow) out = audit::table_head(request_.style);
        else if (!joiner_.rows().empty()) request_.note("nothing in them matches");
        for (const auto* const row : shown) out += audit::table_line(*row, request_.style);
    }
    return print(out);
}

auto log_view::print_fresh() -> result<> {
    std::string out;
    for (std::size_t i = 0; i < fresh_.size(); ++i) {
        if (!request_.filter.matches(fresh_[i])) continue;
        if (request_.json) out.append(fresh_lines_[i]).append("\n");
        else out += audit::table_line(fresh_[i], request_.style);
    }
    fresh_.clear();
    fresh_lines_.clear();
    return print(out);
}

// `changed` are names of the directory; those that are not open yet are new runs.
void log_view::find_new(log_watch& watch, std::vector<std::string> changed) {
    for (auto& name : changed) name = request_.directory + "/" + name;
    if (watch.is_blind()) {
        const auto chosen =
            choose_logs(request_.directory, request_.filter.run, newest_runs, std::nullopt);
        if (chosen) changed.insert(changed.end(), chosen->paths.begin(), chosen->paths.end());
    }
    for (const auto& path : changed) {
        const auto name = std::string_view{path}.substr(path.rfind('/') + 1);
        const bool known = std::ranges::any_of(
            sources_, [&](const source& each) { return each.file.path() == path; });
        if (!known && name.starts_with(request_.filter.run) && is_log(path)) open(path, false);
    }
}

auto log_view::follow() -> result<> {
    log_watch watch; // before the first look, so that nothing falls between
    if (from_directory()) watch.add(request_.directory);
    for (const auto& path : request_.files) watch.add(path);
    open_all();
    GLOVE_CHECK(print_all());
    following_ = true;
    lines_.clear();
    joiner_.forget_ended();
    for (std::vector<std::string> changed; watch.wait(changed); changed.clear()) {
        for (auto& each : sources_) read(each);
        if (from_directory()) find_new(watch, std::move(changed));
        GLOVE_CHECK(print_fresh());
        joiner_.forget_ended();
    }
    return {};
}

auto log_view::show() -> result<bool> {
    if (request_.follow) {
        GLOVE_CHECK(follow());
    } else {
        open_all();
        GLOVE_CHECK(print_all());
    }
    return good_;
}

} // namespace

auto show_log(const log_request& request) -> result<bool> { return log_view{request}.show(); }

} // namespace glove::host
