-- Queues notifications to one recipient each, of which no two are the same (A5).
-- Arguments: the Authorization, a text that no other run uses, the recipient, the characters of
-- the description.
require("result")

local authorization, run, to, filling
local n = 0

function init(args)
  authorization, run, to = args[1], args[2], args[3]
  filling = string.rep("x", tonumber(args[4]))
end

local document = "<notification><to>%s</to><item><description>%s.%d.%d %s</description>" ..
  "<url>http://sender.test/m</url></item></notification>"

function request()
  n = n + 1
  local body = string.format(document, to, run, id, n, filling)
  return "POST /outgoing/admin HTTP/1.1\r\nHost: localhost\r\nAuthorization: " .. authorization ..
    "\r\nContent-Type: application/xml\r\nContent-Length: " .. #body .. "\r\n\r\n" .. body
end
