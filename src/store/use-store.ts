export async function useStore<Store extends { close(): Promise<void> }, T>(
  opening: Promise<Store>,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  const store = await opening
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}
