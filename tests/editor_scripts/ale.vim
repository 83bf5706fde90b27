" Vim with ALE, attached by the documented configuration: diagnostics, code action, the written file.
function! Say(text) abort
  call writefile([a:text], '/dev/stdout', 'a')
endfunction
function! Await(what, expression) abort
  for l:attempt in range(900)
    if eval(a:expression)
      call Say('ok ' . a:what)
      return
    endif
    sleep 100m
  endfor
  call Say('waited in vain: ' . a:what)
  cquit
endfunction
function! Told() abort
  return filter(copy(ale#engine#GetLoclist(bufnr(''))), 'v:val.text =~# "keeps the graph"')
endfunction
filetype plugin on
set filetype=python
call ale#Queue(0, 'lint_file')
call Await('diagnostics', 'len(Told()) == 1')
let s:found = Told()[0]
call Say(printf('    %d:%d %s %s', s:found.lnum, s:found.col, s:found.type, s:found.text))
call cursor(s:found.lnum, s:found.col + 1)
ALECodeAction
call Await('code action', 'getline(s:found.lnum) =~# "total += loss.detach()"')
silent write
call Await('the finding has gone', 'empty(Told())')
call Say('passed')
qall!
