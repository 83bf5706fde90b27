-- Neovim, attached by the documented configuration: diagnostics, hover, code action, the written file.
local function say(...)
  io.stdout:write(table.concat({ ... }, " ") .. "\n")
end

local function await(what, fn)
  if not vim.wait(90000, fn, 50) then
    error("waited in vain: " .. what, 0)
  end
  say("ok", what)
end


local function text(buffer)
  return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n")
end

local function main()
  local buffer = vim.api.nvim_get_current_buf()
  local function find(rule)
    for _, found in ipairs(vim.diagnostic.get(buffer)) do
      local code = found.code or found.user_data.lsp.code
      if code == rule then
        return found
      end
    end
  end

  await("attached", function()
    return #vim.lsp.buf_get_clients(buffer) > 0
  end)
  await("diagnostics", function()
    return find("graph-retained") ~= nil
  end)
  local found = find("graph-retained")
  say("   ", found.lnum + 1 .. ":" .. found.col + 1, found.source, found.message)

  vim.api.nvim_win_set_cursor(0, { found.lnum + 1, found.end_col - 1 })
  local _, client = next(vim.lsp.buf_get_clients(buffer))
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  local answers = vim.lsp.buf_request_sync(buffer, "textDocument/hover", params, 90000) or {}
  local _, answer = next(answers)
  local hover = answer.result.contents.value
  if not hover:find("requires grad", 1, true) and not hover:find("graph-retained", 1, true) then
    error("the hover says: " .. hover, 0)
  end
  say("ok", "hover")

  vim.ui.select = function(items, _, choose)
    for at, item in ipairs(items) do
      local action = item.action or item[2]
      if action.title:find("drop the graph", 1, true) then
        return choose(item, at)
      end
    end
    error("the fix is not offered", 0)
  end
  vim.lsp.buf.code_action()
  await("code action", function()
    return text(buffer):find("total += loss.detach()", 1, true) ~= nil
  end)
  await("the finding has gone", function()
    return find("graph-retained") == nil
  end)
  vim.cmd("silent write")
  say("passed")
end

local worked, problem = xpcall(main, debug.traceback)
if not worked then
  say(tostring(problem))
end
vim.cmd(worked and "qall!" or "cquit 1")
