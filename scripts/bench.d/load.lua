-- What wrk sends, and how it checks the responses. Three environment variables decide:
-- KIND   read, create, change (the status of a thousand pets, in turns), mix (nine reads to one create), or walk (a
--        thousand pages, from the one that the path ends with)
-- KEY    the API key
-- CHECK  1: every body is checked, which slows wrk down
-- The last line of output is JSON.

local kind = os.getenv("KIND")
local pet = '{"name":"Rex","categoryId":3,"status":"available"}'
local json = "application/json"
local turn = 0
local requests = {}
local threads = {}
local first
wrong = 0

wrk.headers["Authorization"] = "Bearer " .. os.getenv("KEY")
if kind == "create" then
   wrk.method, wrk.body = "POST", pet
   wrk.headers["Content-Type"] = json
end

function setup(thread)
   table.insert(threads, thread)
end

-- If all requests are the same, wrk sends them without calling this script.
if kind == "mix" or kind == "walk" or kind == "change" then
   function init()
      local headers = { ["Authorization"] = wrk.headers["Authorization"] }
      if kind == "walk" then
         local path, first_page = wrk.path:match("^(.*=)(%d+)$")
         for page = 1, 1000 do
            requests[page] = wrk.format("GET", string.format("%s%d", path, tonumber(first_page) + page), headers)
         end
         return
      end
      if kind == "change" then
         headers["Content-Type"] = json
         for turn, status in ipairs({ "sold", "pending" }) do
            for id = 1, 1000 do
               local body = string.format('{"status":"%s"}', status)
               requests[(turn - 1) * 1000 + id] = wrk.format("PATCH", "/v1/pets/" .. id, headers, body)
            end
         end
         return
      end
      for i = 1, 9 do
         requests[i] = wrk.format("GET", wrk.path, headers)
      end
      headers["Content-Type"] = json
      requests[10] = wrk.format("POST", "/v1/pets", headers, pet)
   end

   function request()
      turn = turn % #requests + 1
      return requests[turn]
   end
end

-- All reads must get the same body; creates must get the pet. What changes have done is seen in the database.
if os.getenv("CHECK") == "1" then
   function response(status, headers, body)
      if status == 201 then
         if not body:find('"name":"Rex"', 1, true) or not body:find('"id":', 1, true) then
            wrong = wrong + 1
         end
      elseif status == 200 and kind ~= "change" then
         first = first or body
         if body ~= first then
            wrong = wrong + 1
         end
      end
   end
end

function done(summary, latency)
   local bodies = 0
   for _, thread in ipairs(threads) do
      bodies = bodies + thread:get("wrong")
   end
   local errors = summary.errors
   print(string.format(
      '{"requests":%d,"duration":%d,"p50":%d,"p99":%d,"status":%d,"connect":%d,"read":%d,"write":%d,"timeout":%d,"body":%d}',
      summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
      errors.status, errors.connect, errors.read, errors.write, errors.timeout, bodies))
end
