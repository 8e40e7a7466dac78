-- GETs one path. Arguments: the path, and of a query that is to differ from one request to the
-- next its beginning, and the span of the number that it ends in.
require("result")

local path, query, least, most
local n = 0

function init(args)
  path, query, least, most = args[1], args[2], tonumber(args[3]), tonumber(args[4])
end

function request()
  local target = path
  if query ~= nil then
    n = n + 1
    target = path .. query .. (least + n % (most - least + 1))
  end
  return "GET " .. target .. " HTTP/1.1\r\nHost: localhost\r\n\r\n"
end
