// One run under its perimeter: start what stands outside, launch, put the intent on record,
// release, watch, end.
//
// Guarantees: the command is not released before the intent is on record and everything that it is
// promised is there; whatever was started here has ended when this returns. There is no path on
// which the command runs outside of the perimeter.
#pragma once
#include "run/description.hpp"
#include "run/records.hpp"
#include "run/supervise.hpp"
#include <glove/container/launch.hpp>
#include <glove/container/plan.hpp>
#include <glove/run/exec.hpp>
#include <glove/sys/clock.hpp>

namespace glove::run {

// `facts` tells what was armed and reached, however it ends.
[[nodiscard]] auto contain(const container::plan& plan, const exec_request& request,
                           container::launch_request launch, run_records& records,
                           const sys::clock& time, run_facts& facts) -> result<outcome>;

} // namespace glove::run
