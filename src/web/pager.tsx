/** Steps from page to page, and the page size. */
import { Button } from './button.tsx'
import { usePage } from './context.ts'
import { Link } from './link.tsx'
import { pageSizes } from './url-state.ts'

export function Pager({ page, pages }: { page: number; pages: number }) {
  const { nav, words, format } = usePage()
  return (
    <div class="pager row on-screen">
      <label class="row small">
        <span class="quiet">{words.pageSize}</span>
        <select
          value={nav.state.pageSize}
          onChange={({ currentTarget }) => nav.go({ pageSize: Number(currentTarget.value), page: 1 })}
        >
          {pageSizes.map(size => (
            <option key={size}>{size}</option>
          ))}
        </select>
      </label>
      <nav class="row small" aria-label={words.pages}>
        <Step page={page - 1} isThere={page > 1} text={words.previous} />
        <span aria-current="page">{words.page(format.count(page), format.count(pages))}</span>
        <Step page={page + 1} isThere={page < pages} text={words.next} />
      </nav>
    </div>
  )
}

function Step({ page, isThere, text }: { page: number; isThere: boolean; text: string }) {
  if (!isThere) return <Button text={text} disabled />
  return (
    <Link to={{ page }} class="button">
      {text}
    </Link>
  )
}
