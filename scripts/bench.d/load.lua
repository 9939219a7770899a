-- What wrk sends and how it looks at the answers: load.lua KIND KEY check|count.
-- KIND is read, create, mix (nine reads to one create) or walk (a thousand pages, from the one that the
-- path ends with). One line of JSON comes out at the end.

local kind, key, check
local read, create
local pages = {}
local turn, wrong = 0, 0
local first

function setup(thread)
   threads = threads or {}
   table.insert(threads, thread)
end

function init(words)
   kind, key, check = words[1], words[2], words[3] == "check"
   local headers = { ["Authorization"] = "Bearer " .. key }
   read = wrk.format("GET", wrk.path, headers)
   if kind == "walk" then
      local path, first_page = wrk.path:match("^(.*=)(%d+)$")
      for page = 1, 1000 do
         pages[page] = wrk.format("GET", string.format("%s%d", path, tonumber(first_page) + page), headers)
      end
   end
   headers = { ["Authorization"] = "Bearer " .. key, ["Content-Type"] = "application/json" }
   create = wrk.format("POST", "/v1/pets", headers, '{"name":"Rex","categoryId":3,"status":"available"}')
   if not check then
      response = nil
   end
end

function request()
   if kind == "read" then
      return read
   elseif kind == "create" then
      return create
   end
   turn = turn + 1
   if kind == "walk" then
      return pages[turn % 1000 + 1]
   end
   return turn % 10 == 0 and create or read
end

-- Reads must all be the same; creates must show the animal.
function response(status, headers, body)
   if status == 201 then
      if not body:find('"name":"Rex"', 1, true) or not body:find('"id":', 1, true) then
         wrong = wrong + 1
      end
   elseif status == 200 then
      first = first or body
      if body ~= first then
         wrong = wrong + 1
      end
   end
end

function done(summary, latency)
   local bodies = 0
   for _, thread in ipairs(threads) do
      bodies = bodies + (thread:get("wrong") or 0)
   end
   local errors = summary.errors
   print(string.format(
      '{"requests":%d,"duration":%d,"p50":%d,"p99":%d,"status":%d,"connect":%d,"read":%d,"write":%d,"timeout":%d,"body":%d}',
      summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
      errors.status, errors.connect, errors.read, errors.write, errors.timeout, bodies))
end
