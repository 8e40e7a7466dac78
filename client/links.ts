/** The Link field (RFC 8288). */

/** The target of the first link with this relation, as it is written. */
export const linkOf = (field: string | null, relation: string): string | undefined => {
  for (const [, target, parameters = ""] of (field ?? "").matchAll(linkPattern)) {
    const [, quoted, bare] = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))/i.exec(parameters) ?? []
    const relations = (quoted ?? bare ?? "").toLowerCase().split(/\s+/)
    if (relations.includes(relation)) return target
  }
  return undefined
}

const linkPattern = /<([^>]*)>((?:\s*;\s*[^\s=;,]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s;,"]*))?)*)/g
