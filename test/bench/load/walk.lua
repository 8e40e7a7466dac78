-- Runs sessions: each thread has one connection and one session at a time.
-- Argument: "listing" to read the collection of sessions (B3) on the way as well.
require("result")

local steps
local at = 1
local session = ""
local broken = 0
counted = 0

local function put(part, answer)
  return function()
    local body = "<answer>" .. answer .. "</answer>"
    return "PUT " .. session .. "/" .. part .. " HTTP/1.1\r\nHost: localhost\r\n" ..
      "Content-Type: application/xml\r\nContent-Length: " .. #body .. "\r\n\r\n" .. body, 201
  end
end

local function begin()
  local body = '<answer continue="true">I am not afraid.</answer>'
  return "POST /sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/xml\r\n" ..
    "Content-Length: " .. #body .. "\r\n\r\n" .. body, 201
end

local function list()
  return "GET /sessions HTTP/1.1\r\nHost: localhost\r\n\r\n", 200
end

local function read()
  return "GET " .. session .. " HTTP/1.1\r\nHost: localhost\r\n\r\n", 200
end

local expected = 0

function init(args)
  steps = { begin, read, put("name", "Arthur"), put("quest", "I seek the Grail"),
    put("hard_question", "African or European?") }
  if args[1] == "listing" then table.insert(steps, 2, list) end
end

function request()
  local text, status = steps[at]()
  expected = status
  return text
end

function response(status, headers)
  if status ~= expected then
    io.stderr:write("step ", at, " answered ", status, "\n")
    os.exit(1)
  end
  if at == 1 then session = string.match(headers["Location"] or headers["location"], "^https?://[^/]+(.*)$") end
  at = at + 1
  if at > #steps then
    at = 1
    counted = counted + 1
  end
end
