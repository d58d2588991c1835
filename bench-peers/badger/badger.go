// Badger behind C functions, for a program in another language that measures it.
//
// A call from C into Go costs more than one within either, and a goroutine that came from C is bound to its thread; so
// each function does as much as it can before it returns: a whole batch, many reads, many entries of a walk. Bytes are
// read from the caller's memory and written to it, and nothing keeps an address once a function has returned.
//
// Functions that can fail return a text that the caller frees, or nothing when all went well.
package main

/*
#include <stddef.h>
#include <stdint.h>

// Bytes of the caller's. Without any, the address is NULL: Go ends a program that has addresses which cannot be.
typedef struct {
	uint8_t *bytes;
	size_t len;
} badger_bytes;

// A part of a batch.
typedef struct {
	badger_bytes key;
	badger_bytes value;
	uint8_t deletes;
} badger_change;
*/
import "C"

import (
	"encoding/binary"
	"errors"
	"runtime/cgo"
	"sync"
	"time"
	"unsafe"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// How much of a file of the value log must be dead for the rest to be worth copying: what Badger recommends.
const discardRatio = 0.5

// How often the value log is collected. Badger's documents do it every five minutes, when most measurements are over.
const collectInterval = 10 * time.Second

// An open database.
type database struct {
	db *badger.DB
	// Whether Badger itself syncs each write.
	syncs bool
	// Held by who collects the value log: Badger refuses a second one.
	collecting sync.Mutex
	closing    chan struct{}
	collector  sync.WaitGroup
}

// Opens or creates the database in a directory. Values of separatedMin bytes and more go to the value log, and blocks
// that were read get cacheBytes of memory; what is negative is as Badger has it.
//
//export tamarack_badger_open
func tamarack_badger_open(path C.badger_bytes, cacheBytes, separatedMin C.int64_t, syncs C.uint8_t, handle *C.uintptr_t) *C.char {
	settings := badger.DefaultOptions(string(slice(path))).
		WithLoggingLevel(badger.ERROR).
		WithCompression(options.None).
		WithSyncWrites(syncs != 0)
	if cacheBytes >= 0 {
		settings = settings.WithBlockCacheSize(int64(cacheBytes))
	}
	if separatedMin >= 0 {
		settings = settings.WithValueThreshold(int64(separatedMin))
	}
	db, err := badger.Open(settings)
	if err != nil {
		return describe(err)
	}
	opened := &database{db: db, syncs: syncs != 0, closing: make(chan struct{})}
	opened.collector.Add(1)
	go opened.collectNowAndThen()
	*handle = C.uintptr_t(cgo.NewHandle(opened))
	return nil
}

// Closes a database, which nobody uses any more.
//
//export tamarack_badger_close
func tamarack_badger_close(handle C.uintptr_t) *C.char {
	database := of[*database](handle)
	close(database.closing)
	database.collector.Wait()
	cgo.Handle(handle).Delete()
	return describe(database.db.Close())
}

// Makes changes, all or none.
//
//export tamarack_badger_write
func tamarack_badger_write(handle C.uintptr_t, changes *C.badger_change, count C.size_t, sync C.uint8_t) *C.char {
	database := of[*database](handle)
	err := database.db.Update(func(txn *badger.Txn) error {
		for _, change := range unsafe.Slice(changes, count) {
			var err error
			if change.deletes != 0 {
				err = txn.Delete(slice(change.key))
			} else {
				err = txn.Set(slice(change.key), slice(change.value))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && sync != 0 && !database.syncs {
		err = database.db.Sync()
	}
	return describe(err)
}

// Reads the values of keys, at one moment, into buffer, one behind the other. Of each key lengths says how long its value
// is; -1 if there is none. Ends before the first value that does not fit, whose length is told nevertheless; answered
// says how many did.
//
//export tamarack_badger_read
func tamarack_badger_read(handle C.uintptr_t, keys *C.badger_bytes, count C.size_t, buffer C.badger_bytes, lengths *C.int64_t, answered *C.size_t) *C.char {
	lens := unsafe.Slice(lengths, count)
	free := slice(buffer)
	*answered = 0
	return describe(of[*database](handle).db.View(func(txn *badger.Txn) error {
		for at, key := range unsafe.Slice(keys, count) {
			item, err := txn.Get(slice(key))
			if errors.Is(err, badger.ErrKeyNotFound) {
				lens[at] = -1
				*answered++
				continue
			}
			if err != nil {
				return err
			}
			fits := false
			err = item.Value(func(value []byte) error {
				lens[at] = C.int64_t(len(value))
				if fits = len(value) <= len(free); fits {
					free = free[copy(free, value):]
				}
				return nil
			})
			if err != nil || !fits {
				return err
			}
			*answered++
		}
		return nil
	}))
}

// Makes all that was written durable.
//
//export tamarack_badger_sync
func tamarack_badger_sync(handle C.uintptr_t) *C.char {
	return describe(of[*database](handle).db.Sync())
}

// Collects the value log until nothing more of it is worth it.
//
//export tamarack_badger_collect
func tamarack_badger_collect(handle C.uintptr_t) *C.char {
	return describe(of[*database](handle).collect())
}

// Does nothing: what the way from C into Go and back costs.
//
//export tamarack_badger_nothing
func tamarack_badger_nothing() {}

func (database *database) collectNowAndThen() {
	defer database.collector.Done()
	ticker := time.NewTicker(collectInterval)
	defer ticker.Stop()
	for {
		select {
		case <-database.closing:
			return
		case <-ticker.C:
			if err := database.collect(); err != nil {
				database.db.Opts().Logger.Errorf("collecting the value log: %v", err)
			}
		}
	}
}

func (database *database) collect() error {
	database.collecting.Lock()
	defer database.collecting.Unlock()
	for {
		err := database.db.RunValueLogGC(discardRatio)
		if errors.Is(err, badger.ErrNoRewrite) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// A walk through a database as it was when the walk began.
type walk struct {
	txn      *badger.Txn
	iterator *badger.Iterator
	settings badger.IteratorOptions
	// How many entries it has gone past.
	entries int
}

// Begins a walk at a key, or at the first one of its direction if there are no bytes.
//
//export tamarack_badger_walk
func tamarack_badger_walk(handle C.uintptr_t, from C.badger_bytes, backward C.uint8_t) C.uintptr_t {
	walk := &walk{txn: of[*database](handle).db.NewTransaction(false), settings: badger.DefaultIteratorOptions}
	walk.settings.Reverse = backward != 0
	walk.settings.PrefetchValues = false
	walk.iterator = walk.txn.NewIterator(walk.settings)
	walk.iterator.Seek(slice(from))
	return C.uintptr_t(cgo.NewHandle(walk))
}

// Goes to the next entry. Nobody says how far a walk will go, and to fetch values ahead, as Badger does by itself, costs a
// short one many times what it reads: so that begins when the walk has gone as far as Badger would have fetched.
func (walk *walk) advance() {
	walk.iterator.Next()
	walk.entries++
	if walk.entries == walk.settings.PrefetchSize && walk.iterator.Valid() {
		key := walk.iterator.Item().KeyCopy(nil)
		walk.iterator.Close()
		walk.settings.PrefetchValues = true
		walk.iterator = walk.txn.NewIterator(walk.settings)
		walk.iterator.Seek(key)
	}
}

// Writes the next entries into buffer, as many as fit and at most so many: the lengths of key and value, in four bytes
// each of the machine's order, and then both. Used says how many bytes that are: none at the end of the walk; if not even one
// entry fits, as many as it needs.
//
//export tamarack_badger_walk_next
func tamarack_badger_walk_next(handle C.uintptr_t, entriesMax C.size_t, buffer C.badger_bytes, used *C.size_t) *C.char {
	walk, free := of[*walk](handle), slice(buffer)
	*used = 0
	for entries := C.size_t(0); entries < entriesMax && walk.iterator.Valid(); entries++ {
		item, needed := walk.iterator.Item(), 0
		key := item.Key()
		err := item.Value(func(value []byte) error {
			needed = 8 + len(key) + len(value)
			if needed <= len(free) {
				binary.NativeEndian.PutUint32(free, uint32(len(key)))
				binary.NativeEndian.PutUint32(free[4:], uint32(len(value)))
				copy(free[8+copy(free[8:], key):], value)
			}
			return nil
		})
		if err != nil {
			return describe(err)
		}
		if needed > len(free) {
			if entries == 0 {
				*used = C.size_t(needed)
			}
			return nil
		}
		free = free[needed:]
		*used += C.size_t(needed)
		walk.advance()
	}
	return nil
}

// Ends a walk.
//
//export tamarack_badger_walk_end
func tamarack_badger_walk_end(handle C.uintptr_t) {
	walk := of[*walk](handle)
	cgo.Handle(handle).Delete()
	walk.iterator.Close()
	walk.txn.Discard()
}

// What a handle stands for.
func of[T any](handle C.uintptr_t) T {
	return cgo.Handle(handle).Value().(T)
}

// The caller's bytes, where they are.
func slice(bytes C.badger_bytes) []byte {
	return unsafe.Slice((*byte)(bytes.bytes), bytes.len)
}

// An error's text for the caller, who frees it.
func describe(err error) *C.char {
	if err == nil {
		return nil
	}
	return C.CString(err.Error())
}

func main() {}
