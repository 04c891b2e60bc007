/** Control addresses of the local InvoiceXpress. */
import { type Control, controlError, faultControls, readChoice, readNumber, refuse } from '../control.ts'
import {
  type DocumentFault,
  type DocumentRouteName,
  documentFaultNames,
  documentRouteNames,
  type Faults,
} from '../faults.ts'
import { type DocumentAccount, documentChangeKinds } from './account.ts'
import { differenceKinds } from './differences.ts'
import { type SaftDifferenceKind, saftDifferenceKinds } from './saft-differences.ts'

/** Parts of the sandbox that the control addresses change. */
export interface IxControlled {
  documents: DocumentAccount
  faults: Faults<DocumentFault, DocumentRouteName>
  /** Ends the 202 answers for a document's PDF, or for all PDFs when `id` is missing. */
  finishPdf(id?: number): void
}

export const ixControls: Record<string, Control<IxControlled>> = {
  ...faultControls(documentFaultNames, documentRouteNames),
  change({ documents }, search) {
    const kind = readChoice(search, 'kind', documentChangeKinds)
    const invoice = search.get('invoice')
    const target = invoice ?? readNumber(search, 'document', 0)
    const id = refuse(() => documents.change(kind, target, search.get('reference') ?? search.get('share')))
    return { kind, document: id, status: documents.documents.get(id)?.status ?? null }
  },
  follow({ documents }) {
    return { changed: documents.follow() }
  },
  plant({ documents }, search) {
    const kind = readChoice(search, 'kind', [...differenceKinds, ...saftDifferenceKinds])
    const [invoice, month] = ['invoice', 'month'].map(name => search.get(name) ?? undefined)
    return refuse(() =>
      isOfSaft(kind) ? documents.plantInSaft(kind, month) : documents.plant(kind, invoice),
    )
  },
  ready({ finishPdf }, search) {
    const id = search.has('document') ? readNumber(search, 'document', 0) : undefined
    if (id !== undefined && !Number.isInteger(id)) throw controlError('document must be an id.')
    finishPdf(id)
    return {}
  },
}

function isOfSaft(kind: string): kind is SaftDifferenceKind {
  return saftDifferenceKinds.some(each => each === kind)
}
