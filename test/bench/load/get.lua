-- GETs one path, the argument.
require("result")

local text

function init(args)
  text = "GET " .. args[1] .. " HTTP/1.1\r\nHost: localhost\r\n\r\n"
end

function request()
  return text
end
