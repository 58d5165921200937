// A member for each part of a run, in the order in which they are made: they end in the other one.
#include "run/contain.hpp"
#include "run/output_relay.hpp"
#include "run/private_terminal.hpp"
#include "run/streams.hpp"
#include "run/tools.hpp"
#include <array>
#include <glove/sys/program_text.hpp>
#include <glove/sys/sockets.hpp>
#include <optional>
#include <unistd.h>

namespace glove::run {

namespace {

// When init itself ends the agent: after whatever the supervisor does, unless that is stopped.
[[nodiscard]] auto longest_life(const container::limits& limits)
    -> std::optional<std::chrono::seconds> {
    if (!limits.wall_time) return std::nullopt;
    return std::chrono::ceil<std::chrono::seconds>(*limits.wall_time) + termination_grace +
           std::chrono::seconds{1};
}

class contained {
public:
    contained(const container::plan& plan, const exec_request& request,
              container::launch_request launch, run_records& records, const sys::clock& time)
        : plan_{plan}, request_{request}, launch_{launch}, records_{records}, time_{time},
          on_streams_{request.mediation && request.mediation->on_streams} {}

    auto start() -> result<> {
        GLOVE_CHECK(prepare_streams());
        GLOVE_CHECK(prepare_group());
        GLOVE_CHECK(open_channel());
        GLOVE_CHECK(start_servers()); // they start while the sandbox is built
        GLOVE_CHECK(launch());
        // The child builds its perimeter meanwhile; it does not start the agent before `release`.
        GLOVE_CHECK(start_network());
        GLOVE_CHECK(start_signer());
        GLOVE_CHECK(let_go_of_streams(relay_ && relay_->writes_output()));
        GLOVE_CHECK(records_.intend());
        if (network_) GLOVE_CHECK(network_->await_ready());
        if (signer_) GLOVE_CHECK(signer_->await_ready());
        if (!tools_) GLOVE_CHECK(release());
        return {};
    }

    auto watch() -> result<outcome> {
        sys::let_go_of_program_text(); // it may wait for days now
        return supervise(
            {.agent = *agent_,
             .limits = plan_.limits,
             .relay = relay_ ? &*relay_ : nullptr,
             .terminal = *terminal_,
             .egress = network_ ? &*network_ : nullptr,
             .inbox = *inbox_,
             .time = time_,
             .ssh_agent = signer_ ? &*signer_ : nullptr,
             .take_listener = [this](container::inner_listener came) { take(std::move(came)); },
             .tools = tools_ ? &*tools_ : nullptr,
             .release = [this] { return release(); },
             .group = group_ ? &*group_ : nullptr});
    }

    // Ends what stands outside and takes its counts; an error of the run itself goes first.
    auto finish(result<outcome> ended, run_facts& facts) -> result<outcome> {
        facts.layers = agent_->layers();
        if (group_) facts.enforced = group_->enforced();
        if (tools_) finish_tools(*tools_, *inbox_, ended);
        const auto signed_off = finish_signer(facts);
        if (ended && !signed_off) ended = std::unexpected(signed_off.error());
        const auto finished = finish_network(facts);
        if (ended && !finished) ended = std::unexpected(finished.error());
        return ended;
    }

private:
    auto prepare_streams() -> result<> {
        if (on_streams_) GLOVE_CHECK(let_go_of_streams(false));
        GLOVE_TRY(auto terminal,
                  private_terminal::open(on_streams_ ? terminal_wish::never : request_.terminal));
        terminal_.emplace(std::move(terminal));
        GLOVE_TRY(auto inbox, signal_inbox::open(terminal_->has_caller()));
        inbox_.emplace(std::move(inbox));
        return arrange_streams();
    }

    // What the agent gets as 0, 1 and 2. A stream that becomes its terminal is nothing until then.
    auto arrange_streams() -> result<> {
        const auto& ways = terminal_->ways();
        const auto limit = plan_.limits.output_bytes;
        const auto by_pipe = [&](std::size_t stream) {
            return ways[stream] == stream_way::relayed ||
                   (limit && ways[stream] == stream_way::handed);
        };
        if (terminal_->is_made() || by_pipe(1) || by_pipe(2)) {
            GLOVE_TRY(auto made, output_relay::create(limit.value_or(output_relay::no_limit),
                                                      {by_pipe(1), by_pipe(2)}));
            relay_.emplace(std::move(made));
        }
        launch_.terminal = terminal_->request();
        if (terminal_->agent_input() >= 0) launch_.streams[0] = terminal_->agent_input();
        for (std::size_t i = 1; i < 3; ++i)
            if (by_pipe(i)) launch_.streams[i] = relay_->agent_streams()[i - 1];
        for (std::size_t i = 0; i < 3; ++i)
            if (ways[i] == stream_way::terminal) launch_.streams[i] = terminal_->placeholder();
        return {};
    }

    // Glove's own processes inside, which the limits leave room for: init, and the bridge.
    auto prepare_group() -> result<> {
        if (!container::needs_control_group(plan_.limits)) return {};
        const unsigned own = plan_.bridge ? 2 : 1;
        GLOVE_TRY(auto made, container::control_group::prepare(plan_.limits, records_.run(), own));
        group_.emplace(std::move(made));
        launch_.group = &*group_;
        return {};
    }

    // By which the bridge inside passes connections to the proxy of the run.
    auto open_channel() -> result<> {
        if (!plan_.bridge) return {};
        GLOVE_TRY(channel_, sys::message_channel("egress.channel"));
        launch_.bridge = &channel_[1];
        return {};
    }

    auto start_servers() -> result<> {
        if (!request_.mediation) return {};
        GLOVE_TRY(auto started,
                  start_tools(*request_.mediation, plan_,
                              {records_.run(), records_.file(), request_.audit_sync}, streams_));
        tools_.emplace(std::move(started));
        if (!on_streams_) return {};
        launch_.streams[0] = streams_.agent_input.get();
        launch_.streams[1] = streams_.agent_output.get();
        return {};
    }

    auto launch() -> result<> {
        GLOVE_TRY(auto agent, container::launch(launch_));
        agent_.emplace(std::move(agent));
        terminal_->agent_has_streams();
        streams_ = {};
        if (relay_) relay_->agent_has_streams();
        return {};
    }

    auto start_network() -> result<> {
        if (!plan_.bridge) return {};
        const auto& bridge = *plan_.bridge;
        GLOVE_TRY(auto started, net::egress_service::start({.rules = bridge.rules,
                                                            .published = bridge.published,
                                                            .connections = bridge.connections,
                                                            .tell_refusals = ::isatty(2) == 1},
                                                           std::move(channel_[0]), time_,
                                                           records_.log(), records_.run()));
        network_.emplace(std::move(started));
        return {};
    }

    auto start_signer() -> result<> {
        if (!plan_.ssh_agent) return {};
        const auto& wish = *plan_.ssh_agent;
        GLOVE_TRY(auto started, ssh::agent_service::start({.key = wish.key, .socket = wish.socket},
                                                          time_, records_.log(), records_.run()));
        signer_.emplace(std::move(started));
        return {};
    }

    auto release() -> result<> { return agent_->release(longest_life(plan_.limits)); }

    void take(container::inner_listener came) {
        if (signer_ && came.index == plan_.ssh_agent->listener)
            signer_->serve(std::move(came.socket));
        else if (tools_ && came.index == tools_listener(plan_))
            tools_->serve(std::move(came.socket));
    }

    auto finish_signer(run_facts& facts) -> result<> {
        if (!signer_) return {};
        auto finished = signer_->finish();
        facts.signatures = signer_->counts();
        return finished;
    }

    auto finish_network(run_facts& facts) -> result<> {
        if (!network_) return {};
        auto finished = network_->finish();
        const auto records = network_->records();
        facts.destinations.assign(records.begin(), records.end());
        facts.more_destinations = network_->more_records();
        return finished;
    }

    const container::plan& plan_;
    const exec_request& request_;
    container::launch_request launch_;
    run_records& records_;
    const sys::clock& time_;
    bool on_streams_;
    std::optional<private_terminal> terminal_;
    std::optional<signal_inbox> inbox_;
    std::optional<container::control_group> group_;
    std::optional<output_relay> relay_;
    std::array<sys::unique_fd, 2> channel_; // the proxy's end, the bridge's end
    tool_streams streams_;
    std::optional<mediator> tools_;
    std::optional<container::running> agent_;
    std::optional<net::egress_service> network_;
    std::optional<ssh::agent_service> signer_;
};

} // namespace

auto contain(const container::plan& plan, const exec_request& request,
             container::launch_request launch, run_records& records, const sys::clock& time,
             run_facts& facts) -> result<outcome> {
    contained run{plan, request, launch, records, time};
    GLOVE_CHECK(run.start());
    return run.finish(run.watch(), facts);
}

} // namespace glove::run
