/** From page to page, and how much a page holds. */
import { usePage } from './context.ts'
import { Link } from './link.tsx'
import { pageSizes } from './place.ts'

export function Pager({ page, pages }: { page: number; pages: number }) {
  const { nav, words, format } = usePage()
  return (
    <div class="pager">
      <label>
        <span>{words.pageSize}</span>
        <select
          value={nav.place.pageSize}
          onChange={({ currentTarget }) => nav.go({ pageSize: Number(currentTarget.value), page: 1 })}
        >
          {pageSizes.map(size => (
            <option key={size} value={size}>
              {size}
            </option>
          ))}
        </select>
      </label>
      <nav aria-label={words.pages}>
        <Step page={page - 1} isThere={page > 1}>
          {words.previous}
        </Step>
        <span aria-current="page">{words.page(format.count(page), format.count(pages))}</span>
        <Step page={page + 1} isThere={page < pages}>
          {words.next}
        </Step>
      </nav>
    </div>
  )
}

function Step({ page, isThere, children }: { page: number; isThere: boolean; children: string }) {
  if (isThere)
    return (
      <Link to={{ page }} class="button">
        {children}
      </Link>
    )
  return (
    <button type="button" disabled>
      {children}
    </button>
  )
}
