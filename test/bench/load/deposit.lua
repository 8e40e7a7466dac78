-- Deposits notifications of which no two are the same (A2).
-- Arguments: a text that no other run uses, the path of the mailboxes, how many there are
-- (0: the path is the mailbox), and what follows the name of a mailbox, by default nothing.
require("result")

local run, path, mailboxes, rest
local n = 0

function init(args)
  run, path, mailboxes, rest = args[1], args[2], tonumber(args[3]), args[4] or ""
end

local item = [[<?xml version="1.0" encoding="UTF-8"?>
<notification><item><description>The minutes of the meeting are here: %s.%d.%d</description>]] ..
  [[<url>http://content.example/content/WkVhZ2xlczEyMzQ1Njc4OTA</url>]] ..
  [[<password>correct-horse-battery-staple</password>]] ..
  [[<subject>Minutes of Tuesday, with all that was decided</subject></item></notification>
]]

function request()
  n = n + 1
  local body = string.format(item, run, id, n)
  local target = mailboxes == 0 and path or path .. n % mailboxes .. rest
  return "POST " .. target .. " HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/xml+rss\r\n" ..
    "Content-Length: " .. #body .. "\r\n\r\n" .. body
end
