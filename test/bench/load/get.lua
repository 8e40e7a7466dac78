-- GETs one path. Arguments: the path, and of an end that is to differ from one request to the next
-- its beginning, and the span of the number that it ends in; then the Authorization.
require("result")

local path, query, least, most, authorization
local n = 0

function init(args)
  path, query, least, most = args[1], args[2], tonumber(args[3]), tonumber(args[4])
  authorization = args[5] and "Authorization: " .. args[5] .. "\r\n" or ""
end

function request()
  local target = path
  if query ~= nil then
    n = n + 1
    target = path .. query .. (least + n % (most - least + 1))
  end
  return "GET " .. target .. " HTTP/1.1\r\nHost: localhost\r\n" .. authorization .. "\r\n"
end
