/** Reasons for a tax exemption, by the code of the Portuguese tax authority. The texts are the legal ones that documents print. */
const reasons: Readonly<Record<string, string>> = {
  M01: 'Artigo 16.º, n.º 6 do CIVA',
  M02: 'Artigo 6.º do Decreto-Lei n.º 198/90, de 19 de junho',
  M04: 'Isento artigo 13.º do CIVA',
  M05: 'Isento artigo 14.º do CIVA',
  M06: 'Isento artigo 15.º do CIVA',
  M07: 'Isento artigo 9.º do CIVA',
  M09: 'IVA – não confere direito a dedução',
  M10: 'IVA – regime de isenção',
  M11: 'Regime particular do tabaco',
  M12: 'Regime da margem de lucro – agências de viagens',
  M13: 'Regime da margem de lucro – bens em segunda mão',
  M14: 'Regime da margem de lucro – objetos de arte',
  M15: 'Regime da margem de lucro – objetos de coleção e antiguidades',
  M16: 'Isento artigo 14.º do RITI',
  M19: 'Outras isenções',
  M20: 'IVA – regime forfetário',
  M21: 'IVA – não confere direito à dedução',
  M25: 'Mercadorias à consignação',
  M30: 'IVA – autoliquidação',
  M31: 'IVA – autoliquidação',
  M32: 'IVA – autoliquidação',
  M33: 'IVA – autoliquidação',
  M40: 'IVA – autoliquidação',
  M41: 'IVA – autoliquidação',
  M42: 'IVA – autoliquidação',
  M43: 'IVA – autoliquidação',
  M99: 'Não sujeito ou não tributado',
}

/** Returns the code with its reason, or the code alone when the reason is unknown. */
export function describeExemption(code: string): string {
  const reason = reasons[code]
  return reason === undefined ? code : `${code} · ${reason}`
}
