-- Opens mailboxes <name>-<n> (A9), up to a count; afterwards it sends a cheap request.
-- Arguments: the Authorization, the beginning of the names, the count for each thread.
require("result")

local authorization, name, count
local n = 0
counted = 0

function init(args)
  authorization, name, count = args[1], args[2], tonumber(args[3])
end

function request()
  -- wrk never sends the first request: it only examines its form.
  if n > count then
    if counted >= count then wrk.thread:stop() end
    return "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
  end
  n = n + 1
  return "POST /mailboxes HTTP/1.1\r\nHost: localhost\r\nAuthorization: " .. authorization ..
    "\r\nSlug: " .. name .. "-" .. id .. "-" .. n .. "\r\nContent-Length: 0\r\n\r\n"
end

function response(status)
  if status == 201 then counted = counted + 1 end
end
