-- The end of every load: one line of JSON for wrk.ts. Times in ms.
local threads = {}

function setup(thread)
  thread:set("id", #threads)
  table.insert(threads, thread)
end

function done(summary, latency)
  local counted = 0
  for _, thread in ipairs(threads) do counted = counted + (thread:get("counted") or 0) end
  local errors = summary.errors
  io.write(string.format(
    '\nRESULT {"requests":%d,"perSecond":%.1f,"p50Ms":%.3f,"p99Ms":%.3f,"counted":%d,"refused":%d,"broken":%d}\n',
    summary.requests, summary.requests / (summary.duration / 1e6),
    latency:percentile(50) / 1000, latency:percentile(99) / 1000, counted,
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
