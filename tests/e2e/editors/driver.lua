-- What a test asks of Neovim. The configuration itself is README's; nothing of it is repeated here.

local offered = {}
local wanted = nil
driver = {}

-- A user who chooses a code action by the beginning of its title.
vim.ui.select = function(items, options, choose)
  local chosen = nil
  for _, item in ipairs(items) do
    local title = options.format_item(item)
    table.insert(offered, title)
    if vim.startswith(title, wanted) then
      chosen = chosen or item
    end
  end
  choose(chosen)
end

-- Lines end with \n here, whatever they end with in the file.
function driver.text()
  local lines = vim.api.nvim_buf_get_lines(0, 0, -1, true)
  return table.concat(lines, "\n") .. (vim.bo.endofline and "\n" or "")
end

function driver.save()
  vim.cmd("silent write")
  return true
end

function driver.save_all()
  vim.cmd("silent wall")
  return true
end

-- Neovim 0.7 keeps the code with the data of the server.
function driver.diagnostics()
  return vim.tbl_map(function(each)
    return { each.code or each.user_data.lsp.code, each.lnum + 1 }
  end, vim.diagnostic.get(0))
end

-- An empty kind stands for all of them.
function driver.apply(title, line, kind)
  wanted = title
  vim.api.nvim_win_set_cursor(0, { line, 0 })
  vim.cmd("normal! ^")
  vim.lsp.buf.code_action({ only = kind ~= "" and { kind } or nil })
  return true
end

function driver.execute(command)
  local arguments = { { uri = vim.uri_from_bufnr(0) } }
  vim.lsp.buf_request(0, "workspace/executeCommand", { command = command, arguments = arguments }, function(err)
    if err then
      vim.notify(err.message, vim.log.levels.ERROR)
    end
  end)
  return true
end

function driver.offered()
  return offered
end

function driver.messages()
  return vim.fn.execute("messages")
end

function driver.quit()
  vim.defer_fn(function()
    vim.cmd("quitall!")
  end, 0)
  return true
end

-- The call and its answer are JSON in files, since Neovim 0.7 shortens what it prints.
function driver.call()
  local home = vim.env.TMPDIR
  local call = vim.fn.json_decode(vim.fn.readfile(home .. "/call"))
  local answer = { answer = driver[call.name](unpack(call.arguments)) }
  vim.fn.writefile({ vim.fn.json_encode(answer) }, home .. "/answer")
end

vim.lsp.set_log_level("debug")
